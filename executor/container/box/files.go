package box

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// Root is the folder of everything of ours in a container.
const Root = "/.cloudshare"

// Places in a container.
const (
	Run  = Root + "/run"  // read-only: this program and the fence
	Box  = Root + "/box"  // read-only but for what is told and written
	Work = Root + "/work" // the task's private directory
)

// PlaceAt returns where Run or Box is below another root than Root: one whose name nobody
// knew when an image and its job's files were made. What is mounted at a job's own paths can
// be led by an image's links to any path that is known.
func PlaceAt(root, place string) string { return root + strings.TrimPrefix(place, Root) }

// Files of Run.
const (
	Program = "init"
	Fence   = "fence"
)

// Files of Box, that is of an attempt's folder outside.
const (
	orders = "orders" // what to run: never changes
	stops  = "stops"  // a fifo: asks for the end
	told   = "told"   // what Init tells; locked as long as it lives
	Stdout = "stdout"
	Stderr = "stderr"
)

// Written returns the files of Box that Init and the task write: each is mounted by
// itself, so that nothing else of the folder can be changed from inside.
func Written() []string { return []string{told, Stdout, Stderr} }

const (
	// maxOrder bounds an order: a task's command and environment come from a
	// request body of at most 1 MiB, and JSON escapes cost up to six times that.
	maxOrder = 8 << 20
	// maxTold bounds what is read of what was told, from its begin and from its end. The task could write
	// there, too, but Init's last word comes when nothing of the task is left.
	maxTold = 64 << 10
	// maxWhy bounds the reason of a stop; a fifo takes it in one piece.
	maxWhy = 1000
)

// Order is what Init is to run.
type Order struct {
	Task   executor.Task
	Grace  time.Duration // between TERM and KILL
	MaxLog int64         // bytes of stdout, and of stderr
	CPUs   []int         `json:",omitempty"` // of its own
	// MemMiB is its limit of memory if it asked for none, 0 = none; Scratch, in bytes, what it may have on the disk,
	// 0 = no bound.
	MemMiB  int64      `json:",omitempty"`
	Scratch int64      `json:",omitempty"`
	Image   ImageParts // of the image, filled in before the container is made
	// Staged are folders that have files, which Init takes over.
	Staged []string `json:",omitempty"`
}

// ImageParts is what an image says of its tasks.
type ImageParts struct {
	Env        []string `json:",omitempty"`
	WorkingDir string   `json:",omitempty"` // "" or "/": the task begins in Work
	// Healthcheck: it has one, which is not run.
	Healthcheck bool `json:",omitempty"`
}

// line is one line of what Init tells; one field is set.
type line struct {
	Run *Begun `json:"run,omitempty"`
	End *Ended `json:"end,omitempty"`
}

// Begun says that the task's process runs.
type Begun struct {
	At time.Time `json:"at"`
}

// Ended says how the attempt ended.
type Ended struct {
	Result executor.Result `json:"result"`
	At     time.Time       `json:"at"` // of recording it
}

// Make makes an attempt's folder. Any user of the container must be able to
// write what is mounted there; outside nobody gets past the folder above it,
// which is the broker's own.
func Make(dir string, o Order) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, name := range Written() {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err = errors.Join(f.Chmod(0o666), f.Close()); err != nil {
			return err
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, stops), 0o600); err != nil {
		return fmt.Errorf("make fifo: %w", err)
	}
	if err := os.Chmod(filepath.Join(dir, stops), 0o666); err != nil {
		return err
	}
	work := filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(work, 0o700), os.Chmod(work, 0o777)); err != nil {
		return err
	}
	if err := WriteOrder(dir, o); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755) // whole from here on
}

// Inputs is the folder of an attempt's folder that has its files with absolute paths. It
// is made when there are any.
const Inputs = "in"

// WorkOf returns the private directory, outside.
func WorkOf(dir string) string { return filepath.Join(dir, "work") }

// WriteOrder replaces an attempt's order, before its container is made.
func WriteOrder(dir string, o Order) error {
	b, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode order: %w", err)
	}
	if len(b) > maxOrder {
		return fmt.Errorf("order of %d bytes: at most %d", len(b), maxOrder)
	}
	path := filepath.Join(dir, orders)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return errors.Join(os.Chmod(path+".new", 0o644), os.Rename(path+".new", path))
}

// ReadOrder reads an attempt's order.
func ReadOrder(dir string) (o Order, err error) {
	b, err := readAtMost(filepath.Join(dir, orders), maxOrder)
	if err != nil {
		return o, err
	}
	if err = json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("read order: %w", err)
	}
	return o, nil
}

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// Word is what is known of an attempt from its folder.
type Word struct {
	Alive bool // its Init lives
	Run   *Begun
	Ended *Ended
}

// Hear reads what Init has told. A word that is not Alive is its last.
func Hear(dir string) (w Word, err error) {
	f, err := os.Open(filepath.Join(dir, told))
	if err != nil {
		return w, err
	}
	defer f.Close()
	w.Alive = held(f) // looked at first: who is dead tells no more
	b, err := readEnds(f, maxTold)
	if err != nil {
		return w, fmt.Errorf("hear: %w", err)
	}
	for raw := range bytes.SplitSeq(b, []byte("\n")) {
		var l line
		if len(raw) == 0 || json.Unmarshal(raw, &l) != nil {
			continue
		}
		if l.Run != nil {
			w.Run = l.Run
		}
		if l.End != nil {
			w.Ended = l.End
		}
	}
	return w, nil
}

// readEnds returns the first and the last bytes of a file, most of each, with a newline between what is not
// all of it.
func readEnds(f *os.File, most int64) ([]byte, error) {
	first, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil || int64(len(first)) < most {
		return first, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	last, err := io.ReadAll(io.NewSectionReader(f, max(st.Size()-most, most), most))
	return append(append(first, '\n'), last...), err
}

// held reports whether a living process has locked the file.
func held(f *os.File) bool {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return true
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return false
}

// Void ends an attempt that has not begun: its Init, if there will be one, finds
// it ended and does nothing. False: it has begun, or ended.
func Void(dir string, r executor.Result) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, told), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return false, err
	}
	defer f.Close() // and with it the lock
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return false, nil // its Init holds the lock
	}
	if st, err := f.Stat(); err != nil || st.Size() > 0 {
		return false, err
	}
	return true, writeLine(f, line{End: &Ended{Result: r, At: time.Now()}})
}

// Told returns the path of what Init tells, for those who wait for it to change.
func Told(dir string) string { return filepath.Join(dir, told) }

// Stop asks an attempt's Init for the end; false: nobody is there to hear it.
func Stop(dir, why string) (heard bool, err error) { return ask(dir, why) }

// overMark begins what is asked of an Init whose task has gone over a bound; reasons of stops are text.
const overMark = "\x01"

// GoneOver has an attempt's Init kill its task, which has gone over a bound; false: nobody is there to hear it.
func GoneOver(dir, bound string) (heard bool, err error) { return ask(dir, overMark+bound) }

func ask(dir, why string) (heard bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, stops), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if len(why) > maxWhy {
		why = why[:maxWhy]
	}
	if _, err = f.WriteString(why + "\n"); err != nil && !errors.Is(err, unix.EPIPE) {
		return false, err
	}
	return true, nil
}

// writeLine adds a line. It begins with a newline as well, so that a line torn by a
// full disk cannot swallow the next one.
func writeLine(f *os.File, l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte{'\n'}, b...), '\n'))
	return err
}
