package fsm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/sched"
)

// busy returns a state with something in every part of a snapshot.
func busy(t tb) *world {
	p := params()
	p.ReserveAfterMs = 10
	w := newWorld(t, p, "a", "b", "c")
	w.must("a", w.offering("a", 2, 1))
	w.must("b", w.offering("b", 2))
	wide := w.job("b", 1)
	wide.Need.MilliCPU = 2000
	odd := w.job("c", 2)
	odd.Only, odd.Not, odd.Payload = []string{"x", "y"}, []string{"z"}, []byte("other")
	many := w.job("c", 40)
	many.Delivers = true
	w.submit("c", many, odd)
	w.submit("b", wide)
	w.at(20)
	as := w.s.Assignments("a")
	bs := w.s.Assignments("b")
	w.must("a", &command.Started{Attempts: []command.StartedAttempt{
		{AttemptRef: as[0].AttemptRef, DelayMs: 1}, {AttemptRef: as[1].AttemptRef, DelayMs: 1},
	}})
	w.must("b", &command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: bs[len(bs)-1].AttemptRef, BoundMs: 5000}}})
	failed, succeeded := ended(as[0], command.Failed, 15), ended(as[1], command.Succeeded, 19)
	failed.Measured, succeeded.Output, succeeded.Measured = used, collected, used
	w.must("a", &command.Complete{Attempts: []command.Ended{failed, succeeded}})
	w.must("b", &command.Decline{Attempts: []command.AttemptRef{bs[0].AttemptRef}, Reason: "no room", Offer: w.offering("b")})
	w.must("a", &command.Usage{
		Batch: 1, Rows: []command.UsageRow{{Job: 9, Need: command.Resources{MilliCPU: 5}, RunMs: 3}},
	})
	w.must("c", &command.Cancel{Job: command.JobID{Site: "c", Num: 2}, Task: 30})
	w.must("c", &command.Cancel{Job: command.JobID{Site: "c", Num: 2}, Task: 2})
	w.submit("a", w.job("a", 1), w.job("a", 1))
	w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: 1}, Task: -1})
	boxed, cluster := w.job("c", 3), w.offering("c", 0)
	boxed.Image, cluster.Machines[0].Runs = true, command.RunsImages
	boxed.Selectors = []string{"!old", "gpu in (a,b)"}
	cluster.Machines[0].Labels, cluster.Machines[0].Slots = "gpu=a", 7
	w.must("c", cluster)
	w.submit("c", boxed)
	w.must("c", &command.SiteLost{Site: "b", Incarnation: 1, Term: w.term})
	return w
}

func snapshotOf(t tb, s *State) []byte {
	var b bytes.Buffer
	if err := s.Snapshot().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRestoreRefusesDamage(t *testing.T) {
	w := busy(t)
	w.check()
	good := snapshotOf(t, w.s)
	if _, err := reborn(w.s); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if _, err := Restore(bytes.NewReader(good[:i])); !errors.Is(err, ErrBadSnapshot) {
			t.Fatalf("cut at %d of %d: %v", i, len(good), err)
		}
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if _, err := Restore(bytes.NewReader(bad)); !errors.Is(err, ErrBadSnapshot) {
			t.Fatalf("bit flipped in byte %d of %d: %v", i, len(good), err)
		}
	}
	if _, err := Restore(bytes.NewReader(append(bytes.Clone(good), 0))); !errors.Is(err, ErrBadSnapshot) {
		t.Fatalf("a byte too many: %v", err)
	}
	if _, err := Restore(strings.NewReader("")); !errors.Is(err, ErrBadSnapshot) {
		t.Fatalf("nothing: %v", err)
	}
}

// Found by FuzzRestore: an ended job without tasks that ended.
func TestRestoreRefusesAnEndWithoutTasks(t *testing.T) {
	w := newWorld(t, params(), "a")
	w.submit("a", w.job("a", 1))
	w.s.mutJob(1).endedMs = 0
	if _, err := Restore(bytes.NewReader(snapshotOf(t, w.s))); !errors.Is(err, ErrBadSnapshot) {
		t.Fatal(err)
	}
}

// Found by FuzzRestore: more home runs than a site's own cell of the matrix has.
func TestRestoreRefusesMoreHomeRunsThanRuns(t *testing.T) {
	w := busy(t)
	a := w.s.byName["a"]
	a.homeRan = ownOf(a).Add(sched.Int128{Lo: 1})
	if _, err := Restore(bytes.NewReader(snapshotOf(t, w.s))); !errors.Is(err, ErrBadSnapshot) {
		t.Fatal(err)
	}
}

// shortWriter fails after a number of bytes.
type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteReportsErrors(t *testing.T) {
	w := busy(t)
	n := len(snapshotOf(t, w.s))
	for _, left := range []int{0, n - 1} {
		if err := w.s.Snapshot().Write(&shortWriter{left}); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("room for %d of %d bytes: %v", left, n, err)
		}
	}
}

// FuzzRestore restores arbitrary bytes, and arbitrary bytes with a right checksum: a fault is an error, never a
// panic, and what is accepted is a state that passes all checks and writes the same bytes again.
func FuzzRestore(f *testing.F) {
	w := busy(f)
	good := snapshotOf(f, w.s)
	f.Add(good)
	long := len(snapshotMagic) // a number in a longer form than needed, which was once accepted
	f.Add(slices.Concat(good[:long], []byte{good[long] | 0x80, 0}, good[long+1:]))
	f.Add(snapshotOf(f, New()))
	f.Add(snapshotOf(f, newWorld(f, params(), "a").s))
	f.Add(snapshotOf(f, gatedBusy(f).s))
	for _, policy := range sched.Projected() {
		w := newWaiting(f, policy, 2, "a", "b")
		w.submit("a", w.job("a", 9))
		w.at(5000)
		w.must("b", w.offering("b", 1))
		f.Add(snapshotOf(f, w.s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, in := range [][]byte{data, sealed(data)} {
			s, err := Restore(bytes.NewReader(in))
			if err != nil {
				if !errors.Is(err, ErrBadSnapshot) {
					t.Fatal(err)
				}
				continue
			}
			if err = s.check(); err != nil {
				t.Fatal(err)
			}
			if out := snapshotOf(t, s); !bytes.Equal(out, in) {
				t.Fatal("an accepted snapshot is not canonical")
			}
			if _, err = s.Apply(&command.Batch{Term: s.term, Elapsed: 1}); err != nil {
				t.Fatal(err)
			}
			if err = s.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// sealed adds the right checksum to data.
func sealed(data []byte) []byte {
	body := data[:max(0, len(data)-sha256.Size)]
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

// A snapshot does not say of a delivery what no entries lead to.
func TestRestoreRefusesFalseDeliveries(t *testing.T) {
	for name, spoil := range map[string]func(*job, *delivery){
		"of a job that does not deliver": func(j *job, d *delivery) { j.delivers, d.facts = false, nil },
		"at its owner's site":            func(j *job, d *delivery) { d.site = j.owner },
		"at no site":                     func(_ *job, d *delivery) { d.site = 77 },
		"nowhere":                        func(_ *job, d *delivery) { d.site = -1 },
		"of a task in the range":         func(_ *job, d *delivery) { d.task = 39 },
		"of a task that has ended":       func(_ *job, d *delivery) { d.task = 0 },
		"of no attempt":                  func(_ *job, d *delivery) { d.attempt = 0 },
		"beyond the latest attempt":      func(_ *job, d *delivery) { d.attempt = d.last + 1 },
		"before its assignment":          func(_ *job, d *delivery) { d.since = d.token },
		"of a later entry":               func(_ *job, d *delivery) { d.since = 1 << 30 },
		"before the run's end":           func(_ *job, d *delivery) { d.sinceMs = d.endedMs - 1 },
		"of a run that ends first":       func(_ *job, d *delivery) { d.startedMs = d.endedMs + 1 },
		"with an output of no manifest": func(_ *job, d *delivery) {
			d.facts = &facts{output: command.Output{Size: 1}}
		},
		"with too large an output": func(_ *job, d *delivery) {
			d.facts = &facts{output: command.Output{Manifest: [32]byte{1}, Size: command.MaxManifest + 1}}
		},
		"with a measure beyond bounds": func(_ *job, d *delivery) {
			d.facts = &facts{measured: command.Measured{UserMs: command.MaxProcessorMs + 1}}
		},
		"with a source of no kind": func(_ *job, d *delivery) {
			d.facts = &facts{measured: command.Measured{Source: command.LastMeasureSource + 1}}
		},
	} {
		w := busy(t)
		for seq, j := range w.s.jobs.All() {
			if d := j.tasks.delivering().First(); d != nil {
				j = w.s.mutJob(seq)
				spoil(j, j.set(w.s.epoch).delivering().First())
			}
		}
		if _, err := Restore(bytes.NewReader(snapshotOf(t, w.s))); !errors.Is(err, ErrBadSnapshot) {
			t.Errorf("a delivery %s: %v", name, err)
		}
	}
}
