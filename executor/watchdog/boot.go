package watchdog

import (
	"os"
	"path/filepath"
	"strings"
)

// BootID changes with every start of the machine.
func BootID() string {
	b, err := os.ReadFile(filepath.Clean("/proc/sys/kernel/random/boot_id"))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}
