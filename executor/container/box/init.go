package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/sandbox"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Verb is the argument with which the program is Init.
const Verb = "box"

// Init is the life of a container's first process. It runs the task of its order
// as a child, ends it at its timeout, at its fence or when it is asked to, and
// tells how it ended. Whatever it leaves, or what it would leave if it were
// killed, dies with it: the kernel ends a container with its first process. It
// needs neither the broker nor the engine for any of this, and no capability. It
// returns the exit code.
func Init() int {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(8 << 20) // it counts to the task's own limit
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "box: this is the first process of a task's container, and starts nowhere else")
		return 2
	}
	b := &boxed{clerk: watchdog.NewClerk(), root: filepath.Dir(filepath.Dir(os.Args[0]))}
	if err := b.open(); err != nil {
		fmt.Fprintf(os.Stderr, "box: %v\n", err)
		return 1
	}
	r := b.run()
	b.report(r)
	return r.ExitCode
}

// boxed is Init's work on its only attempt.
type boxed struct {
	root    string // Root, or what stands for it: see PlaceAt
	order   Order
	told    *os.File
	stops   int // the fifo
	fence   *watchdog.Page
	out     watchdog.Output
	clerk   *watchdog.Clerk
	sources *watchdog.Sources
	watch   *watchdog.Watch
}

var _ watchdog.Link = (*boxed)(nil)

// open takes the attempt; it fails if it was begun before.
func (b *boxed) open() (err error) {
	if err = b.openTold(); err != nil {
		return err
	}
	if b.order, err = ReadOrder(b.at(Box)); err != nil {
		return err
	}
	for i, name := range []string{Stdout, Stderr} {
		if b.out.Files[i], err = os.OpenFile(filepath.Join(b.at(Box), name), os.O_RDWR|os.O_APPEND, 0); err != nil {
			return err
		}
	}
	if err = errors.Join(b.mapFence(), b.openSources()); err != nil {
		return err
	}
	// Nobody can say who sent a signal: the task would end its attempt by one, as if its site had.
	if err = sandbox.DropSignals(); err != nil {
		return fmt.Errorf("drop signals: %w", err)
	}
	return nil
}

// at returns where Run or Box is in this container.
func (b *boxed) at(place string) string { return PlaceAt(b.root, place) }

// openTold locks what this process tells, which is empty before an attempt begins.
func (b *boxed) openTold() (err error) {
	if b.told, err = os.OpenFile(filepath.Join(b.at(Box), told), os.O_RDWR|os.O_APPEND, 0); err != nil {
		return err
	}
	if err = unix.Flock(int(b.told.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", told, err)
	}
	if st, serr := b.told.Stat(); serr != nil || st.Size() > 0 {
		return errors.Join(errors.New("this attempt was begun before: a container is started once"), serr)
	}
	return nil
}

func (b *boxed) mapFence() error {
	f, err := os.Open(filepath.Join(b.at(Run), Fence))
	if err != nil {
		return err
	}
	defer f.Close()
	b.fence, err = watchdog.MapPage(int(f.Fd()))
	return err
}

// openSources has the fifo wake the loop, which nobody else can but its task's end and the clock.
func (b *boxed) openSources() (err error) {
	path := filepath.Join(b.at(Box), stops)
	if b.stops, err = unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if b.sources, err = watchdog.NewSources(); err != nil {
		return err
	}
	return b.sources.Add(b.stops, watchdog.FromHandler)
}
