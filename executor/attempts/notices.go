package attempts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Notices tells followers that a file has grown, or that a writer has closed it:
// one inotify instance for all, since a user has only a few.
type Notices struct {
	f    *os.File
	done chan struct{}

	mu sync.Mutex
	// by is the listeners of each watch. Invariant: no watch without one.
	by map[int]map[chan struct{}]bool
}

// OpenNotices starts to listen.
func OpenNotices() (*Notices, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) {
		return nil, fmt.Errorf("make inotify, of which each broker needs one: this user has as many as it may, or this process as "+
			"many files open: raise fs.inotify.max_user_instances (sysctl), or the limit of open files: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("make inotify: %w", err)
	}
	n := &Notices{f: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), by: map[int]map[chan struct{}]bool{}}
	go n.run()
	return n, nil
}

// Add listens to a file until the returned function is called.
func (n *Notices) Add(path string) (<-chan struct{}, func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ch := make(chan struct{}, 1)
	wd, err := n.control(func(fd int) (int, error) {
		return unix.InotifyAddWatch(fd, path,
			unix.IN_MODIFY|unix.IN_CLOSE_WRITE)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch %s: %w", path, err)
	}
	if n.by[wd] == nil {
		n.by[wd] = map[chan struct{}]bool{}
	}
	n.by[wd][ch] = true
	return ch, func() { n.remove(wd, ch) }, nil
}

func (n *Notices) control(f func(fd int) (int, error)) (v int, err error) {
	raw, err := n.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) { v, err = f(int(fd)) })
	return v, errors.Join(cerr, err)
}

func (n *Notices) remove(wd int, ch chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.by[wd], ch)
	if n.by[wd] != nil && len(n.by[wd]) == 0 {
		delete(n.by, wd)
		_, _ = n.control(func(fd int) (int, error) { return unix.InotifyRmWatch(fd, uint32(wd)) })
	}
}

func (n *Notices) run() {
	defer close(n.done)
	buf := make([]byte, 64<<10)
	for {
		k, err := n.f.Read(buf)
		if err != nil {
			return // closed
		}
		n.mu.Lock()
		for b := buf[:k]; len(b) >= unix.SizeofInotifyEvent; {
			wd := int(int32(binary.NativeEndian.Uint32(b)))
			n.ring(wd)
			skip := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			b = b[min(skip, len(b)):]
		}
		n.mu.Unlock()
	}
}

// ring wakes the listeners of a watch, or all when the kernel lost events.
// REQUIRES: n.mu held.
func (n *Notices) ring(wd int) {
	for id, set := range n.by {
		if wd >= 0 && id != wd {
			continue
		}
		for ch := range set {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

// Close ends it; listeners hear no more.
func (n *Notices) Close() {
	n.f.Close()
	<-n.done
}
