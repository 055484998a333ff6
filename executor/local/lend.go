package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// lentGroups are the folders of cgroups that a sandbox's supervisor has its groups in.
// Its root shows none of them: it reaches them through files that it inherits.
type lentGroups struct {
	files []*os.File
	args  func(fd int) []string
}

func (l lentGroups) arguments(fd int) []string {
	if len(l.files) == 0 {
		return nil
	}
	return l.args(fd)
}

func (l lentGroups) close() {
	for _, f := range l.files {
		f.Close()
	}
}

// lend opens the folders for a sandbox's supervisor and, for another user than ours,
// makes its group and gives it away. Only memory is limited for another user: a process
// is born in a group of v2 only by whoever may write in all groups between.
func (c *cgroups) lend(slot string, p *sandbox.Plan) (l lentGroups, err error) {
	if c.mem == "" || p.Become && c.v2 {
		return l, nil
	}
	if p.Become {
		if err = giveGroup(filepath.Join(c.mem, slot), p); err != nil {
			return l, err
		}
	}
	f, err := os.OpenFile(c.mem, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return l, err
	}
	return lentGroups{files: []*os.File{f}, args: func(fd int) []string {
		group := filepath.Join("/proc/self/fd", strconv.Itoa(fd), slot)
		args := []string{"-memory", group, "-v2=" + strconv.FormatBool(c.v2)}
		if c.v2 {
			args = append(args, "-kill", group, "-cpu="+strconv.FormatBool(c.cpu))
		}
		return args
	}}, nil
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
