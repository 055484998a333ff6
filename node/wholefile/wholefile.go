// Package wholefile replaces small files that something rests on: keys, tokens, who the members are. It imports nothing
// of the broker. What may be lost is package notefile's.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace has a file hold data, whole and synced, and its folder know that: a crash leaves the old one or the new one.
func Replace(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone, if all went well
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
