//go:build kube

package kube_test

func beBroker(string) {}
