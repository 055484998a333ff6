package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// counter is one look.
type counter struct {
	*scratch
	used  usage
	why   string
	until int64 // CLOCK_BOOTTIME at which it must be done, 0 = whenever
	steps int
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

// add counts one more file.
func (c *counter) add(bytes int64) error {
	c.used.bytes += bytes
	c.used.files++
	if err := c.pass(); err != nil {
		return err
	}
	switch {
	case c.used.bytes > c.most.bytes:
		c.why = fmt.Sprintf("over its scratch: more than %s in its work folder, /tmp and /var/tmp", mebibytes(c.most.bytes))
		return errOver
	case c.used.files > c.most.files:
		c.why = fmt.Sprintf("over its scratch: more than %d files in its work folder, /tmp and /var/tmp", c.most.files)
		return errOver
	}
	return nil
}

func mebibytes(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	return strconv.FormatInt(n>>20, 10) + "Mi"
}

// folders counts the attempt's folders, without what is mounted in them.
func (c *counter) folders() error {
	for _, name := range []string{sandbox.WorkFolder, sandbox.TempFolder} {
		f, err := watchdog.OpenFolder(unix.AT_FDCWD, name)
		if err != nil {
			continue // there is nothing to count in what is not there
		}
		err = watchdog.Weigh(f, c.add)
		f.Close()
		if errors.Is(err, watchdog.ErrDeep) {
			c.why = fmt.Sprintf("over its scratch: folders nested more than %d deep", watchdog.MaxDepth)
			err = errOver
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// beyond counts blocks that were allocated beyond the end of output.
func (c *counter) beyond() error {
	for _, f := range c.out {
		if err := c.add(excess(f)); err != nil {
			return err
		}
	}
	return nil
}

// excess returns how many bytes a file has beyond its end, but for what a file system makes ready for it.
func excess(f *os.File) int64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	const ready = 1 << 20
	return max(st.Blocks*watchdog.BlockSize-st.Size-ready, 0)
}

// dropExcess gives back what a file has beyond its end. REQUIRES: nobody writes to it.
func dropExcess(f *os.File) error {
	st, err := f.Stat()
	if err != nil || excess(f) == 0 {
		return err
	}
	// To the same size would do nothing on some file systems.
	return errors.Join(f.Truncate(st.Size()+1), f.Truncate(st.Size()))
}
