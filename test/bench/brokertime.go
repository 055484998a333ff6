package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// brokerTimeOf returns what a federation's brokers have used of the cores so far, to the nanosecond: the process table
// has clock ticks only, of which a short round has few. A thread that has ended is not counted; Go keeps its threads.
func brokerTimeOf(fed *testbed.Federation) (sum time.Duration, err error) {
	for _, s := range fed.Sites {
		used, err := timeOf(s)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// timeOf returns what one broker has used of the cores so far.
func timeOf(s *testbed.Site) (time.Duration, error) {
	pid, err := s.PID()
	if err != nil {
		return 0, err
	}
	return threadsTime(fmt.Sprintf("/proc/%d/task", pid))
}

// threadsTime adds up a folder of threads.
func threadsTime(folder string) (sum time.Duration, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "[0-9]*", "schedstat"))
	if err != nil {
		return 0, fmt.Errorf("list threads: %w", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse %s: %w", path, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
