package main

import "github.com/cloudshare/cloudshare/executor/local"

// supervise is the other life of this binary: the process that owns one
// attempt of a local machine. Nothing else of the program may run before it.
func supervise(args []string) (code int, yes bool) {
	if len(args) == 0 || args[0] != "supervise" {
		return 0, false
	}
	return local.Supervise(args[1:]), true
}
