package attempts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// AsideFolder is where a handler puts what it cannot use and cannot remove.
const AsideFolder = "quarantine"

// Of what was put aside so many are kept, for so long: somebody may want to look.
const (
	maxAside   = 64
	asideAge   = 7 * 24 * time.Hour
	asideEvery = time.Hour
)

// Aside keeps what stands in a handler's way: a broker goes on without it, and its log
// says so. It is a folder below the handler's own, made when it is needed.
type Aside struct {
	dir string
	log zerolog.Logger
}

// NewAside returns that of a handler.
func NewAside(k Keeping) *Aside {
	return &Aside{dir: filepath.Join(k.Dir, AsideFolder), log: k.Logger}
}

// Put takes a file or folder out of the way. What cannot even be renamed stays where
// it is, and the log says so.
func (a *Aside) Put(path string, why error) {
	to, err := a.place(filepath.Base(path))
	if err == nil {
		err = os.Rename(path, to)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		a.log.Warn().AnErr("why", why).Err(err).Str("path", path).
			Msg("it can be neither used nor put aside, and is passed over: remove it by hand (as root; a mount point or an immutable file comes first)")
	default:
		a.log.Warn().AnErr("why", why).Str("path", path).Str("to", to).
			Msg("it cannot be used, and was put aside; it is removed after a week, or by hand")
	}
}

// place finds a name for one more.
func (a *Aside) place(name string) (string, error) {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return "", err
	}
	if list := a.list(); len(list) >= maxAside {
		oldest := filepath.Join(a.dir, list[0])
		if err := watchdog.RemoveTree(oldest); err != nil {
			return "", fmt.Errorf("%s is full: %w", a.dir, err)
		}
	}
	return filepath.Join(a.dir, strconv.FormatInt(time.Now().UnixNano(), 10)+"-"+name), nil
}

// list returns the names of all there are, oldest first.
func (a *Aside) list() []string {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names) // nanoseconds have as many digits for 200 years
	return names
}

// Run removes what was put aside long enough ago, until quit is closed.
func (a *Aside) Run(quit <-chan struct{}) {
	tick := time.NewTicker(asideEvery)
	defer tick.Stop()
	for {
		a.sweep(time.Now().Add(-asideAge), quit)
		select {
		case <-tick.C:
		case <-quit:
			return
		}
	}
}

// sweep removes what was put aside before that moment.
func (a *Aside) sweep(before time.Time, quit <-chan struct{}) {
	limit := strconv.FormatInt(before.UnixNano(), 10)
	for _, name := range a.list() {
		select {
		case <-quit:
			return
		default:
		}
		if name > limit {
			return
		}
		if err := watchdog.RemoveTree(filepath.Join(a.dir, name)); err != nil {
			a.log.Warn().Err(err).Str("folder", a.dir).Msg("what was put aside cannot be removed: remove it by hand (as root; a mount point or an immutable file comes first)")
		}
	}
}

// Folder makes a folder if it is missing. It puts a file of that name aside.
func (a *Aside) Folder(path string) error {
	err := os.MkdirAll(path, 0o700)
	if !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	a.Put(path, err)
	return os.MkdirAll(path, 0o700)
}
