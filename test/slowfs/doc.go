// Command slowfs mounts a folder a second time, as a file system whose syncs
// take longer for as long as a file says so. It stands in for a slow disk under
// one broker in the figures and in the chaos tests.
//
// It is a module of its own: the product's go.mod gets nothing of it.
package main
