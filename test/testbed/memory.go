package testbed

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ResidentMiB returns the memory (VmRSS) of the broker's process.
func (s *Site) ResidentMiB() (float64, error) {
	pid, err := s.PID()
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read memory of %s: %w", s.Name, err)
	}
	return parseResident(string(text))
}

// parseResident finds "VmRSS: 1234 kB" in a process's status.
func parseResident(status string) (float64, error) {
	for line := range strings.Lines(status) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "VmRSS:" || f[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse resident memory %q: %w", f[1], err)
		}
		return float64(kib) / 1024, nil
	}
	return 0, errors.New("the process's status names no resident memory")
}
