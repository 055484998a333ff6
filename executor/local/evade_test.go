package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// evadeVar has the test program be a task that hides a file from looks at its folder.
const evadeVar = "EVADE_LOOKS"

// evader keeps a file where the look under way does not come any more.
type evader struct {
	before, long, after string // folders, in the order in which they are looked at
	watched             int    // inotify
	opensLong           int    // the number of the watch that tells that long is looked at
}

// bigFile is larger than the bound of tests.
const bigFile = 12 << 20

// evade never returns, unless something fails.
func evade() error {
	e, err := newEvader()
	if err != nil {
		return err
	}
	if err = os.WriteFile(filepath.Join(e.after, "big"), make([]byte, bigFile), 0o600); err != nil {
		return err
	}
	unix.Sync() // its blocks are known
	//nolint:forbidigo // a task's output
	fmt.Println("hidden")
	return e.follow()
}

// newEvader makes three folders, of which the second takes long to look at, and watches them.
func newEvader() (e evader, err error) {
	for _, dir := range []string{"a", "b", "c"} {
		err = errors.Join(err, os.Mkdir(dir, 0o700))
	}
	here, failed := os.Open(".")
	if err = errors.Join(err, failed); err != nil {
		return e, err
	}
	defer here.Close()
	order, err := here.Readdirnames(-1) // as whoever looks reads them
	if err != nil {
		return e, err
	}
	order = slices.DeleteFunc(order, func(name string) bool { return !strings.Contains("abc", name) })
	e.before, e.long, e.after = order[0], order[1], order[2]
	for i := range 1000 {
		if err = os.WriteFile(filepath.Join(e.long, fmt.Sprint(i)), nil, 0o600); err != nil {
			return e, err
		}
	}
	if e.watched, err = unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
		return e, err
	}
	e.opensLong, err = unix.InotifyAddWatch(e.watched, e.long, unix.IN_OPEN)
	_, failed = unix.InotifyAddWatch(e.watched, e.after, unix.IN_CLOSE_NOWRITE)
	// A look that came too early for it ends here, at the file, and nothing else is told: it would stay forever.
	_, found := unix.InotifyAddWatch(e.watched, e.before, unix.IN_OPEN)
	return e, errors.Join(err, failed, found)
}

// follow moves the file behind the look, and back when it has passed.
func (e evader) follow() error {
	event := make([]byte, 4<<10)
	for {
		n, err := unix.Read(e.watched, event)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n < unix.SizeofInotifyEvent {
			return errors.Join(err, errors.New("no more is told of looks"))
		}
		from, to := e.before, e.after
		if int(binary.NativeEndian.Uint32(event)) == e.opensLong {
			from, to = to, from
		}
		err = os.Rename(filepath.Join(from, "big"), filepath.Join(to, "big"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
}
