package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// memoryUse of a process, in MiB.
type memoryUse struct {
	own   float64 // pages that no other process has
	share float64 // own ones, and its part of those that are shared, such as the program's (PSS)
}

// memoryOf returns what a broker uses.
func memoryOf(s *testbed.Site) (memoryUse, error) {
	pid, err := s.PID()
	if err != nil {
		return memoryUse{}, err
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return memoryUse{}, fmt.Errorf("read memory of %s: %w", s.Name, err)
	}
	return parseMemory(string(text))
}

func parseMemory(rollup string) (m memoryUse, err error) {
	found := 0
	for line := range strings.Lines(rollup) {
		f := strings.Fields(line)
		if len(f) != 3 || f[2] != "kB" {
			continue
		}
		to := map[string]*float64{"Pss:": &m.share, "Private_Clean:": &m.own, "Private_Dirty:": &m.own}[f[0]]
		if to == nil {
			continue
		}
		kib, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return m, fmt.Errorf("parse memory %q: %w", line, err)
		}
		*to += float64(kib) / 1024
		found++
	}
	if found != 3 {
		return m, fmt.Errorf("the process's memory has %d of 3 lines", found)
	}
	return m, nil
}
