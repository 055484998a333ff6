package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// lend opens the folder of groups for a sandbox's supervisor, whose root shows none: it has
// it as fdGroups, and args name its groups there. No file: it has none. For another user
// than ours its group is made, and given away. Only memory is limited for another user: a
// process is born in a group of v2 only by whoever may write in all groups between.
func (c *cgroups) lend(slot string, p *sandbox.Plan) (folder *os.File, args []string, err error) {
	if c.mem == "" || p.Become && c.v2 {
		return nil, nil, nil
	}
	if p.Become {
		if err = giveGroup(filepath.Join(c.mem, slot), p); err != nil {
			return nil, nil, err
		}
	}
	if folder, err = os.OpenFile(c.mem, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
		return nil, nil, err
	}
	lent := cgroups{mem: filepath.Join("/proc/self/fd", strconv.Itoa(fdGroups)), v2: c.v2, cpu: c.cpu}
	if c.v2 {
		lent.kill = lent.mem
	}
	return folder, lent.arguments(slot), nil
}

// giveGroup makes a group whose files are the sandbox's user's.
func giveGroup(dir string, p *sandbox.Plan) error {
	if err := makeGroup(dir); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	errs := []error{err, os.Chown(dir, p.UID, p.GID)}
	for _, f := range files {
		errs = append(errs, os.Chown(filepath.Join(dir, f.Name()), p.UID, p.GID))
	}
	return errors.Join(errs...)
}
