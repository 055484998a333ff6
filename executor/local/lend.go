package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// Groups of v2 that a sandbox's one is divided into: one that holds processes hands no controllers
// down, and its supervisor, which must outlive what the kernel kills for memory, is not in the
// group that limits its task.
const (
	ownGroup  = "supervisor"
	taskGroup = "task"
)

// lent is what the supervisor of a sandbox has of the groups; its root shows none.
type lent struct {
	folder *os.File // it has it as fdGroups, nil = it has no group
	born   *os.File // the group in which it is started, nil = ours
	args   []string // they name its groups in folder
}

func (l *lent) close() {
	l.folder.Close()
	l.born.Close()
}

// lendsV2 reports whether sandboxes have groups of v2.
func (c *cgroups) lendsV2() bool {
	return c.kill != "" && (c.v2 || c.mem == "" && (c.cpu || c.pids || c.io.isBounding()))
}

// lend makes the groups of a sandbox. They are its user's, whoever that is.
func (c *cgroups) lend(slot string, p *sandbox.Plan) (lent, error) {
	switch {
	case c.lendsV2():
		return c.lendV2(filepath.Join(c.kill, slot), p)
	case c.mem != "":
		return c.lendV1(slot, p)
	}
	return lent{}, nil
}

// inherited is fdGroups as its supervisor names it.
var inherited = filepath.Join("/proc/self/fd", strconv.Itoa(fdGroups))

// lendV2 makes a group with the supervisor's below it, and delegates it as a service manager
// does: a process is born in a group of v2 only by whoever may write in the group above its own
// and that. The supervisor makes the task's, by the limits of which it holds its attempts.
func (c *cgroups) lendV2(dir string, p *sandbox.Plan) (l lent, err error) {
	if err = makeGroup(dir); err != nil {
		return l, err
	}
	for controller, has := range map[string]bool{"memory": c.v2, "cpu": c.cpu, "pids": c.pids, "io": c.io.isBounding()} {
		if has {
			err = errors.Join(err, enable(controller, dir))
		}
	}
	own := filepath.Join(dir, ownGroup)
	if err = errors.Join(err, makeGroup(own), delegate(dir, p)); err != nil {
		return l, err
	}
	if l.folder, err = openGroup(dir); err != nil {
		return l, err
	}
	if l.born, err = openGroup(own); err != nil {
		l.folder.Close()
		return lent{}, err
	}
	named := cgroups{kill: inherited, v2: c.v2, cpu: c.cpu}
	if c.v2 {
		named.mem = inherited
	}
	l.args = append(named.arguments(taskGroup), c.io.argument()...)
	if c.pids && p.Processes > 0 {
		l.args = append(l.args, "-pids", strconv.FormatUint(p.Processes, 10))
	}
	return l, nil
}

// delegate gives a group of v2 to the sandbox's user, but not its limits.
func delegate(dir string, p *sandbox.Plan) (err error) {
	if !p.Become {
		return nil
	}
	for _, name := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		err = errors.Join(err, os.Chown(filepath.Join(dir, name), p.UID, p.GID))
	}
	return err
}

// lendV1 lends the folder of memory groups, and makes another user's.
func (c *cgroups) lendV1(slot string, p *sandbox.Plan) (l lent, err error) {
	if p.Become {
		if err = giveGroup(filepath.Join(c.mem, slot), p); err != nil {
			return l, err
		}
	}
	if l.folder, err = openGroup(c.mem); err != nil {
		return l, err
	}
	named := cgroups{mem: inherited}
	l.args = named.arguments(slot)
	return l, nil
}

func openGroup(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	return f, nil
}

// giveGroup makes a group of v1 whose files are the sandbox's user's.
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

// memLimit returns the attempt's limit of memory in MiB, 0 = none. Only in a sandbox it has a share.
func (a *attempt) memLimit() int64 { return attempts.MemLimit(a.Task.Need, a.share) }
