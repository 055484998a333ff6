package local

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Whom says whose tasks run in a sandbox.
type Whom uint8

// Whose tasks are contained.
const (
	ContainNobody  Whom = iota // strangers' commands have all the broker's rights
	ContainForeign             // other sites' tasks
	ContainAll                 // this site's own tasks, too
)

// nobody is the host's user and group for the sandboxes of a broker that is root.
const nobody = 65534

// containment is what the handler knows of its sandboxes.
type containment struct {
	whom    Whom
	plan    sandbox.Plan // of a task without a network
	seen    *listing
	groups  *cgroups
	why     error            // why no sandbox can be made here, nil = one can
	foreign executor.Network // what the site gives other sites' tasks
	// noOutbound is why sandboxes cannot have that network here, nil = they can.
	noOutbound error
}

// findContainment completes the plan, and tries it.
func findContainment(cfg Config, g *cgroups) containment {
	c := containment{whom: cfg.Contain, plan: cfg.Sandbox, foreign: cfg.Foreign, seen: new(listing), groups: g}
	if c.whom == ContainNobody {
		return c
	}
	c.plan = completePlan(cfg)
	c.plan.Grouped = g.lendsV2() && g.pids
	if c.why = c.resolve(); c.why == nil {
		c.why = c.try(cfg, kind{contained: true})
	}
	if c.foreign == executor.NetworkOutbound && c.why == nil {
		c.noOutbound = c.try(cfg, kind{contained: true, network: executor.NetworkOutbound})
	}
	return c
}

// completePlan fills in the user and what is the broker's own.
func completePlan(cfg Config) sandbox.Plan {
	p := cfg.Sandbox
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 { // root maps strangers to somebody who owns nothing
		uid, gid = nobody, nobody
	}
	p.UID, p.GID = cmp.Or(p.UID, uid), cmp.Or(p.GID, gid)
	p.Become = os.Getuid() != p.UID
	p.Hide = append(p.Hide[:len(p.Hide):len(p.Hide)], cfg.Dir)
	return p
}

// contains reports whether a task runs in a sandbox.
func (h *Handler) contains(t executor.Task) bool {
	switch h.contain.whom {
	case ContainAll:
		return true
	case ContainForeign:
		return t.Owner != h.cfg.Site
	case ContainNobody:
	}
	return false
}

// makeOwn gives the folders of a sandbox's slot to its user.
func (c *containment) makeOwn(dir string) error {
	for _, name := range []string{sandbox.WorkFolder, sandbox.TempFolder} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if !c.plan.Become {
		return nil
	}
	for _, name := range []string{"", sandbox.WorkFolder, sandbox.TempFolder} {
		if err := os.Chown(filepath.Join(dir, name), c.plan.UID, c.plan.GID); err != nil {
			return err
		}
	}
	return nil
}

// resolve checks the plan, and finds where its shares lead.
func (c *containment) resolve() (err error) {
	if err = c.plan.Validate(); err == nil {
		c.plan, err = c.plan.Resolve()
	}
	return err
}

// try makes a sandbox and lets it go again; the error says what this machine forbids.
func (c *containment) try(cfg Config, k kind) error {
	dir, err := os.MkdirTemp(filepath.Join(cfg.Dir, "slots"), "try-")
	if err != nil {
		return err
	}
	defer func() { _ = watchdog.RemoveTree(dir) }()
	if err = c.makeOwn(dir); err != nil {
		return err
	}
	cmd := exec.Command(cfg.Executable, superviseVerb, "-sandbox", "-try")
	plan := c.planOf(k)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, append(supervisorEnv(), c.planEntry(plan)), plan.Attributes()
	var said bytes.Buffer
	cmd.Stderr = &said
	if plan.Outbound {
		return c.tryOutbound(cfg, cmd, dir, &said)
	}
	return tried(cmd.Run(), &said)
}

// tried returns why a sandbox could not be made, by what its supervisor has said.
func tried(err error, said *bytes.Buffer) error {
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		first, _, _ := strings.Cut(text, "\n")
		return errors.New(strings.TrimPrefix(first, "supervise: "))
	}
	return fmt.Errorf("start a process in namespaces of its own (may users make user namespaces here?): %w", err)
}

// planEntry is a plan as an entry of a supervisor's environment.
func (c *containment) planEntry(p sandbox.Plan) string {
	return planVar + "=" + c.seen.plan(p).Encode()
}

// warnings are what an operator must not miss at the start of a broker that is root, or is not.
func (c *containment) warnings(root bool) (list []string) {
	switch {
	case c.whom == ContainNobody && root:
		list = append(list, "other sites' commands run as root, with all rights on this machine: sandbox.tasks is off")
	case c.whom == ContainNobody:
		list = append(list, "other sites' commands run as this broker's user and see all that it sees: sandbox.tasks is off")
	case c.why != nil:
		list = append(list, "no sandbox can be made here, so tasks that need one are refused: "+c.why.Error())
	}
	if root && c.whom != ContainAll {
		list = append(list, "this broker is root, and so are its own users' commands: give it a user of its own, or say sandbox.tasks: all")
	}
	return list
}

// status is one line for people.
func (c *containment) status(scratch int64) string {
	whose := map[Whom]string{ContainForeign: "other sites' tasks", ContainAll: "all tasks"}[c.whom]
	switch {
	case c.whom == ContainNobody:
		return "other sites' tasks are NOT contained: they have this broker's rights (sandbox.tasks: off)"
	case c.why != nil:
		return whose + " are refused, no sandbox can be made: " + c.why.Error()
	}
	s := whose + " run in sandboxes, " + c.networkStatus()
	if c.plan.Become {
		s += fmt.Sprintf(" as user %d, not as root", c.plan.UID)
	}
	return s + c.bounds(scratch)
}

// bounds says what a sandbox may have of processes and disk, and what holds it to that.
func (c *containment) bounds(scratch int64) (s string) {
	if n := c.plan.Processes; n > 0 {
		by := "RLIMIT_NPROC"
		if c.plan.Grouped {
			by = "pids.max"
		}
		s = fmt.Sprintf(", %d processes each (%s)", n, by)
	}
	switch {
	case scratch > 0:
		s += fmt.Sprintf(", %s of scratch", diskuse.Mebibytes(scratch))
	case scratch == 0:
		s += ", a quarter of the free disk as scratch"
	}
	return s
}
