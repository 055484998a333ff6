package relay

import (
	"errors"
	"fmt"
	"os"
)

// SyncDir makes what was created, renamed or removed in a folder last.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}
