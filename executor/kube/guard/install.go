package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies this program to where the pod's task begins with it: it runs in
// a container of the program's own image, before the task's.
func install(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	in, err := os.Open(self)
	if err != nil {
		return err
	}
	defer in.Close()
	to := filepath.Join(dir, filepath.Base(Program))
	out, err := os.OpenFile(to+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // by the kernel alone, where it can
	// Any user of the task's image runs it, whatever the mask here.
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return fmt.Errorf("copy this program to %s: %w", to, err)
	}
	return os.Rename(to+".new", to)
}
