package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// How a process is told to play until the n-th fail point, and where.
const (
	crashAt  = "STORE_CRASH_AT"
	crashDir = "STORE_CRASH_DIR"
)

// twoPieces is what is filled in the play.
var twoPieces = sync.OnceValue(func() string { return big()[:shortPiece+7] })

// playLimits has room in the cache for twoPieces and one more.
func playLimits() Limits {
	roomy := Limit{1 << 20, time.Hour}
	return limitsOf(roomy, Limit{charge(int64(len(twoPieces()))) + block, 0}, roomy)
}

// play does one of everything that changes files, and can be repeated. It tells what is there for sure, and before a
// call that may remove it that it is not.
func play(r *rig, tell func(sure bool, at Place, content string)) error {
	put := func(at Place, content string) error {
		b, err := r.Put(context.Background(), at, strings.NewReader(content), files.MaxFile)
		if err == nil && b == files.BlobOf([]byte(content)) {
			tell(true, at, content)
		}
		return err
	}
	fill := func(i int, end func(*Partial) error) error {
		p, err := r.Begin(cached, files.BlobOf([]byte(twoPieces())))
		if err != nil {
			return err
		}
		if err = p.WritePiece(i, r.pieceOf(twoPieces(), i)); err != nil {
			_ = p.Close()
			return err
		}
		err = end(p)
		return errors.Join(err, p.Close())
	}
	all := []func() error{
		func() error { return put(own, "one") },
		func() error { return put(own, text("two", 300_000)) },
		func() error { return put(own, text("five", shortLog/2)) },
		func() error {
			err := put(own, text("six", shortLog/2)) // which the log has no room for
			r.log.await()
			return err
		},
		func() error { return fill(1, (*Partial).Close) },
		func() error {
			if err := fill(0, (*Partial).Finish); err != nil {
				return err
			}
			tell(true, cached, twoPieces())
			return nil
		},
		func() error {
			r.clock = r.clock.Add(time.Minute) // it is used later than what is to go
			return put(cached, "three")
		},
		func() error {
			r.clock = r.clock.Add(time.Minute)
			tell(false, cached, twoPieces())
			return put(cached, "four")
		},
		func() error { return put(out, "result") },
		func() error {
			r.Pin("attempt", ref(out, "result"))
			r.Unpin("attempt")
			tell(false, out, "result")
			_, _, err := r.Collect()
			r.log.await()
			return err
		},
		func() error {
			tell(false, own, "one")
			path := filepath.Join(r.dir, fileOf(ref(own, "one")))
			if err := os.WriteFile(path, []byte("ONE"), 0o600); err != nil {
				return err
			}
			if err := r.Verify(own, ref(own, "one").Hash); !errors.Is(err, ErrDamaged) {
				return fmt.Errorf("damage is not found: %w", err)
			}
			return put(own, "one")
		},
	}
	for i, f := range all {
		if err := f(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// sureties collects what play tells.
type sureties map[Place][]string

func (m sureties) tell(sure bool, at Place, content string) {
	m[at] = slices.DeleteFunc(m[at], func(c string) bool { return c == content })
	if sure {
		m[at] = append(m[at], content)
	}
}

// playUntilKilled is the process that ends itself.
func playUntilKilled() {
	n, err := strconv.Atoi(os.Getenv(crashAt))
	var passed atomic.Int64
	r := &rig{dir: os.Getenv(crashDir), clock: moment, piece: shortPiece, boot: "first"}
	r.opts = Options{Dir: r.dir, Limits: playLimits(), Now: func() time.Time { return r.clock }}
	var s *Store
	if err == nil {
		s, err = open(r.opts, machine{"first", func(point) error {
			if passed.Add(1) > int64(n) {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		}, shortLog, true})
	}
	if err == nil {
		r.use(s)
		r.Repin(noPins)
		err = play(r, func(sure bool, at Place, content string) {
			_, _ = fmt.Fprintln(os.Stdout, sure, at.Space, len(content), content[:min(len(content), 6)])
		})
		err = errors.Join(err, r.Close())
	}
	_, _ = fmt.Fprintln(os.Stderr, "not killed:", err)
}

// points plays once without faults and returns the fail points that it passes, with those of Close if they count.
func points(t *testing.T, closing bool) []point {
	t.Helper()
	var mu sync.Mutex // the log is emptied beside the rest
	var passed []point
	r := &rig{fataler: t, dir: t.TempDir(), clock: moment, piece: shortPiece, boot: "first", fault: func(p point) error {
		mu.Lock()
		defer mu.Unlock()
		passed = append(passed, p)
		return nil
	}}
	r.opts = Options{Dir: r.dir, Limits: playLimits(), Now: func() time.Time { return r.clock }}
	r.start()
	r.Repin(noPins)
	err := play(r, sureties{}.tell)
	list := passed
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	if closing {
		list = passed
	}
	for _, p := range []point{
		pointMkdir, pointCreate, pointAllocate, pointWrite, pointRow, pointSync, pointSettle, pointRename, pointFolder,
		pointRemove, pointBoot, pointLog, pointSyncAll, pointReset,
	} {
		if !slices.Contains(list, p) {
			t.Errorf("fail point %q is not passed", p)
		}
	}
	return list
}

// TestKilledAtEachFailPoint ends a real process before each change of a file. What it had said to be there is, nothing
// half done is seen, and the next process does all that there is to do.
func TestKilledAtEachFailPoint(t *testing.T) {
	for n, p := range points(t, true) {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", crashAt, n), crashDir+"="+dir)
		var said, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &errs
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("point %d, %s: %v, %s", n, p, err, errs.String())
		}
		r := newRig(t, dir, playLimits()).withPieces(shortPiece)
		for at, contents := range parse(t, &said) {
			for _, content := range contents {
				if got, err := r.read(at, files.HashOf([]byte(content))); err != nil || got != content {
					t.Errorf("point %d, %s: %.9q of %v was there: %v", n, p, content, at, err)
				}
			}
		}
		r.wantWhole(fmt.Sprintf("point %d, %s", n, p))
		r.playOn(fmt.Sprintf("point %d, %s", n, p))
		_ = r.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// parse reads what a killed process has told.
func parse(t *testing.T, said io.Reader) sureties {
	t.Helper()
	m := sureties{}
	known := []string{
		"one", text("two", 300_000), text("five", shortLog/2), text("six", shortLog/2), twoPieces(), "three", "four", "result",
	}
	places := map[string]Place{own.Space.String(): own, cached.Space.String(): cached, out.Space.String(): out}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		var sure bool
		var space, begin string
		var size int
		if _, err := fmt.Sscan(lines.Text(), &sure, &space, &size, &begin); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		i := slices.IndexFunc(known, func(c string) bool { return len(c) == size && c[:min(6, size)] == begin })
		m.tell(sure, places[space], known[i])
	}
	return m
}

// wantWhole checks that all blobs are what they say, but for those that the play has damaged itself, and that nothing
// counts but them.
func (r *rig) wantWhole(when string) {
	r.Helper()
	var want []string
	var used [spaces]int64
	for at, e := range r.entries {
		used[at.Space] += charge(e.size)
		if at.part {
			want = append(want, fileOf(at.key)+partExt, fileOf(at.key)+rowsExt)
			continue
		}
		want = append(want, fileOf(at.key))
		if err := r.Verify(at.Place, at.Hash); err != nil && (at.key != ref(own, "one") || !errors.Is(err, ErrDamaged)) {
			r.Errorf("%s: %v", when, err)
		}
	}
	slices.Sort(want)
	if got := r.names(); !slices.Equal(got, want) {
		r.Errorf("%s: files %q, want %q", when, got, want)
	}
	if used != r.used || len(r.busy) != 0 || len(r.Store.open) != 0 {
		r.Errorf("%s: %v bytes count, want %v; %d busy, %d open", when, r.used, used, len(r.busy), len(r.Store.open))
	}
}

// playOn has the play go to its end, and all that it tells be there.
func (r *rig) playOn(when string) {
	r.Helper()
	sure := sureties{}
	if err := play(r, sure.tell); err != nil {
		r.Errorf("%s: later: %v", when, err)
	}
	for at, contents := range sure {
		for _, content := range contents {
			r.want(at, content)
		}
	}
	r.wantWhole(when + ", later")
}

// TestFullDiskAtEachFailPoint: a disk that is full at any moment, for one write or for long, is told as ErrFull.
// Nothing half done is seen, nothing that was there is lost, and with room again all goes on, without a restart and
// with one.
func TestFullDiskAtEachFailPoint(t *testing.T) {
	for n := range points(t, false) {
		for _, long := range []bool{false, true} {
			r := &rig{fataler: t, dir: t.TempDir(), clock: moment, piece: shortPiece, boot: "first"}
			r.opts = Options{Dir: r.dir, Limits: playLimits(), Now: func() time.Time { return r.clock }}
			var mu sync.Mutex
			passed, p := 0, point("")
			r.fault = func(at point) error {
				mu.Lock()
				defer mu.Unlock()
				if passed++; passed == n+1 {
					p = at // the log is emptied beside the rest: it is not the same one each time
				}
				if at != pointRemove && (passed == n+1 || long && passed > n) {
					return syscall.ENOSPC
				}
				return nil
			}
			s, err := open(r.opts, machine{"first", func(at point) error { return r.fault(at) }, shortLog, true})
			sure := sureties{}
			if err == nil {
				r.use(s)
				r.Repin(noPins)
				err = play(r, sure.tell)
			}
			if s != nil {
				s.log.await()
			}
			mu.Lock()
			when := fmt.Sprintf("point %d, %s, for long %t", n, p, long)
			// For content and partial blobs unpinned ones of the cache go, so one write in vain is none.
			evicts := slices.Contains([]point{pointMkdir, pointCreate, pointAllocate, pointWrite, pointRow}, p)
			// Without the log each blob is synced by itself.
			without := slices.Contains([]point{pointLog, pointSyncAll, pointReset}, p)
			inVain := p != pointRemove && !((evicts || without) && !long)
			if err != nil && !errors.Is(err, ErrFull) || err == nil && inVain {
				t.Errorf("%s: %v", when, err)
			}
			mu.Unlock()
			r.fault = func(point) error { return nil }
			if s == nil {
				r.start()
			} else if long {
				r.reopen()
			}
			r.Repin(noPins)
			for at, contents := range sure {
				for _, content := range contents {
					_, err = r.read(at, files.HashOf([]byte(content)))
					if gone := (evicts || long) && at.Space == Cache && errors.Is(err, ErrUnknown); !gone {
						r.want(at, content)
					}
				}
			}
			r.wantWhole(when)
			r.playOn(when)
			_ = r.Close()
			if err = os.RemoveAll(r.dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}
