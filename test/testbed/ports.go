package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// GossipAddress returns where the broker listens for gossip, over UDP and TCP. The
// configuration names port 0, so the system is asked: a broker has no other UDP
// port.
func (s *Site) GossipAddress() (string, error) {
	pid, err := s.PID()
	if err != nil {
		return "", err
	}
	table, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		return "", fmt.Errorf("read udp ports: %w", err)
	}
	for line := range strings.Lines(string(table)) {
		// sl local_address rem_address st queues tr retrnsmt uid timeout inode …
		f := strings.Fields(line)
		if len(f) < 10 || !holds(pid, "socket:["+f[9]+"]") {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			return "", fmt.Errorf("read udp port %q: %w", f[1], err)
		}
		return hostPort(int(port)), nil
	}
	return "", errors.New(s.Name + " has no UDP port")
}

// holds reports whether a process has a socket open.
func holds(pid int, socket string) bool {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*") // the pattern is well-formed
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && to == socket {
			return true
		}
	}
	return false
}
