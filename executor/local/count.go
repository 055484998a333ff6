package local

import (
	"errors"
	"os"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/diskuse"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// counter is one look.
type counter struct {
	*scratch
	diskuse.Walk
	until int64 // CLOCK_BOOTTIME at which it must be done, 0 = whenever
	steps int
}

// counter returns a look at all that the attempt has.
func (s *scratch) counter() *counter {
	c := &counter{scratch: s}
	c.Walk = diskuse.Walk{Most: s.most, Where: "its work folder, /tmp and /var/tmp", Pass: c.pass}
	return c
}

// pass returns why the look must end here, if it must.
func (c *counter) pass() error {
	const between = 32 // the clock is not looked at each time
	c.steps++
	switch {
	case c.stop.Load():
		return errStopped
	case c.until > 0 && c.steps%between == 0 && executor.Boottime() >= c.until:
		return errLate
	}
	return nil
}

// folders counts the attempt's folders, without what is mounted in them.
func (c *counter) folders() error {
	for _, name := range []string{sandbox.WorkFolder, sandbox.TempFolder} {
		if err := c.Folder(name); err != nil {
			return err
		}
	}
	return nil
}

// beyond counts blocks that were allocated beyond the end of output.
func (c *counter) beyond() error {
	for _, f := range c.out {
		if err := c.Add(diskuse.Excess(f)); err != nil {
			return err
		}
	}
	return nil
}

// dropExcess gives back what a file has beyond its end. REQUIRES: nobody writes to it.
func dropExcess(f *os.File) error {
	st, err := f.Stat()
	if err != nil || diskuse.Excess(f) == 0 {
		return err
	}
	// To the same size would do nothing on some file systems.
	return errors.Join(f.Truncate(st.Size()+1), f.Truncate(st.Size()))
}
