package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

var epoch = time.UnixMilli(1_800_000_000_000).UTC()

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func openTest(t *testing.T, dir string, c *clock, change func(*Config)) *Archive {
	t.Helper()
	cfg := Config{Dir: dir, Site: "a", Federation: "f", Now: c.now}
	if change != nil {
		change(&cfg)
	}
	a, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// ended is an attempt of a's job n that ended so long after the epoch.
func ended(n uint64, after time.Duration) Attempt {
	end := epoch.Add(after)
	return Attempt{
		Job: command.JobID{Site: "a", Num: n}, Name: "job", Labels: map[string]string{"team": "x"}, Count: 1, Number: 1, Token: n,
		Site: "b", Machine: "local", Outcome: fsm.EndSucceeded, Final: true, Need: command.Resources{MilliCPU: 2000},
		Submitted: end.Add(-20 * time.Second), Queued: end.Add(-20 * time.Second), Assigned: end.Add(-11 * time.Second),
		Started: end.Add(-10 * time.Second), Ended: end, EndedMs: after.Milliseconds(), ChargedMs: 10_000, Index: n,
	}
}

// all reads an archive as job numbers, and its gaps.
func all(t *testing.T, a *Archive, q Query) (jobs string, gaps []Gap) {
	t.Helper()
	var out []string
	gaps, err := a.Scan(t.Context(), q, func(x *Attempt) error {
		out = append(out, fmt.Sprint(x.Job.Num))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " "), gaps
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	text := rapid.StringN(0, 40, 120)
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.UnixMilli(rapid.Int64Range(1, 1<<45).Draw(t, "ms")).UTC()
	})
	rapid.Check(t, func(t *rapid.T) {
		want := Attempt{
			Job:  command.JobID{Site: text.Draw(t, "owner"), Num: rapid.Uint64().Draw(t, "num")},
			Name: text.Draw(t, "name"), Labels: rapid.MapOfN(text, text, 1, 4).Draw(t, "labels"),
			Task: rapid.Uint32().Draw(t, "task"), Count: rapid.Uint32().Draw(t, "count"), Number: rapid.Uint32().Draw(t, "number"),
			Token: rapid.Uint64().Draw(t, "token"), Site: text.Draw(t, "site"), Machine: text.Draw(t, "machine"),
			Outcome: fsm.Ending(rapid.Byte().Draw(t, "outcome")), Final: rapid.Bool().Draw(t, "final"), Home: rapid.Bool().Draw(t, "home"),
			ExitCode: rapid.Int32().Draw(t, "exit"), Signal: rapid.Int32().Draw(t, "signal"),
			Need: command.Resources{
				MilliCPU: rapid.Int64().Draw(t, "cpu"), MemMiB: rapid.Int64().Draw(t, "mem"), GPU: rapid.Int64().Draw(t, "gpu"),
			},
			Submitted: moment.Draw(t, "submitted"), Queued: moment.Draw(t, "queued"), Assigned: moment.Draw(t, "assigned"),
			Started: moment.Draw(t, "started"), Ended: time.UnixMilli(rapid.Int64Range(1, 1<<45).Draw(t, "ended")).UTC(),
			EndedMs: rapid.Int64().Draw(t, "endedms"), ChargedMs: rapid.Int64().Draw(t, "charged"),
			Index: rapid.Uint64().Draw(t, "index"), Reason: text.Draw(t, "reason"),
		}
		if rapid.Bool().Draw(t, "measured") {
			want.Measured = command.Measured{
				PeakBytes: rapid.Int64().Draw(t, "peak"), UserMs: rapid.Int64().Draw(t, "user"),
				SystemMs: rapid.Int64().Draw(t, "system"), InBytes: rapid.Int64().Draw(t, "in"),
				OutBytes: rapid.Int64().Draw(t, "out"), Source: command.MeasureSource(rapid.Byte().Draw(t, "source")),
			}
		}
		record := appendAttempt(nil, &want)
		var got Attempt
		if err := readAttempt(record[1:], &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, want)
		}
		cut := rapid.IntRange(1, len(record)-1).Draw(t, "cut")
		if err := readAttempt(record[1:cut], &got); !errors.Is(err, errBadRecord) {
			t.Fatalf("cut at %d of %d: %v", cut, len(record), err)
		}
	})
}

func FuzzRecord(f *testing.F) {
	x := ended(7, time.Hour)
	f.Add(appendAttempt(nil, &x)[1:])
	f.Add(encodeHead(&head{created: epoch, federation: "f", homes: []homeRun{{1, 2, 3}}})[1:])
	f.Fuzz(func(_ *testing.T, b []byte) {
		var a Attempt
		_ = readAttempt(b, &a)
		_, _ = readHead(b)
		_, _ = readGap(b)
	})
}

func TestArchiveSurvivesARestart(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	must(t, a.AddGap(Gap{To: 4, Until: epoch, Reason: "before the archive began"}))
	must(t, a.Append([]Attempt{ended(1, time.Second), ended(2, 2*time.Second)}, node.EventID{Entry: 9, N: 2, Home: 5}))
	must(t, a.Append(nil, node.EventID{Entry: 12, N: 1, Home: 5}))
	if _, err := Open(Config{Dir: dir, Site: "a", Federation: "f", Now: c.now}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	must(t, a.Close())
	must(t, a.Close())

	a = openTest(t, dir, c, nil)
	if got := a.Place(); got != (node.EventID{Entry: 12, N: 1, Home: 5}) {
		t.Errorf("goes on after %v", got)
	}
	must(t, a.Append([]Attempt{ended(3, 3*time.Second)}, node.EventID{Entry: 13, N: 1}))
	jobs, gaps := all(t, a, Query{})
	if jobs != "1 2 3" || len(gaps) != 1 || gaps[0].To != 4 {
		t.Errorf("%s, gaps %v", jobs, gaps)
	}
	if jobs, _ := all(t, a, Query{
		Since: epoch.Add(2 * time.Second), Until: epoch.Add(3 * time.Second), Site: "b",
		Labels: map[string]string{"team": "x"},
	}); jobs != "2" {
		t.Errorf("a part: %s", jobs)
	}
	second := Query{Visible: func(id command.JobID) bool { return id.Num == 2 }}
	if jobs, _ := all(t, a, second); jobs != "2" {
		t.Errorf("of the second job: %s", jobs)
	}
	if jobs, _ := all(t, a, Query{Labels: map[string]string{"team": "y"}}); jobs != "" {
		t.Errorf("of nobody: %s", jobs)
	}
}

// TestTornEnds cuts the file at every length: what is whole is there, and the
// archive goes on.
func TestTornEnds(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	begin := a.Bytes()
	must(t, a.Append([]Attempt{ended(1, time.Second)}, node.EventID{Entry: 1, N: 1}))
	first := a.Bytes()
	must(t, a.Append([]Attempt{ended(2, time.Second)}, node.EventID{Entry: 2, N: 1}))
	must(t, a.Close())
	path := filepath.Join(dir, "0000000001.seg")
	whole, err := os.ReadFile(path)
	must(t, err)
	for n := range len(whole) {
		must(t, os.WriteFile(path, whole[:n], 0o600))
		a := openTest(t, dir, c, nil)
		jobs, _ := all(t, a, Query{})
		want, entry := "", uint64(0)
		if int64(n) >= first {
			want, entry = "1", 1
		}
		if jobs = strings.TrimSuffix(jobs, " 2"); int64(n) < begin && jobs != "" || int64(n) >= first && jobs != want ||
			a.Place().Entry != entry {
			t.Fatalf("cut at %d: %q, place %v", n, jobs, a.Place())
		}
		must(t, a.Append([]Attempt{ended(7, time.Second)}, node.EventID{Entry: 7, N: 1}))
		if jobs, _ := all(t, a, Query{}); !strings.HasSuffix(jobs, "7") {
			t.Fatalf("cut at %d: then %q", n, jobs)
		}
		must(t, a.Close())
		must(t, os.RemoveAll(filepath.Join(dir, "0000000002.seg")))
	}
}

// TestDamageIsAGap: an old segment that is damaged costs its rest, and is told.
func TestDamageIsAGap(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	must(t, a.Append([]Attempt{ended(1, time.Second), ended(2, time.Second)}, node.EventID{Entry: 1, N: 1}))
	at := a.Bytes() - 40
	c.at = epoch.Add(30 * 24 * time.Hour)
	must(t, a.Tick()) // begins another segment: this one is old
	must(t, a.Append([]Attempt{ended(3, 30*24*time.Hour)}, node.EventID{Entry: 2, N: 1}))
	f, err := os.OpenFile(filepath.Join(dir, "0000000001.seg"), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("xxxx"), at)
	must(t, err)
	must(t, f.Close())
	jobs, gaps := all(t, a, Query{})
	if jobs != "1 3" || len(gaps) != 1 || !strings.Contains(gaps[0].Reason, "segment 1") {
		t.Errorf("%s, gaps %v", jobs, gaps)
	}
}

func TestRetention(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, func(cfg *Config) { cfg.Keep, cfg.MaxBytes = 48*time.Hour, LeastBytes })
	for i := range uint64(10) {
		c.at = epoch.Add(time.Duration(i) * 12 * time.Hour)
		must(t, a.Append([]Attempt{ended(i, c.at.Sub(epoch))}, node.EventID{Entry: i + 1, N: 1}))
		must(t, a.Tick())
	}
	if jobs, _ := all(t, a, Query{}); jobs != "5 6 7 8 9" {
		t.Errorf("by age: %s", jobs)
	}
	big := ended(1, 0)
	big.Reason = strings.Repeat("x", maxText)
	many := make([]Attempt, 256)
	for i := range many {
		many[i] = big
	}
	for i := range uint64(20) {
		must(t, a.Append(many, node.EventID{Entry: 100 + i, N: 1}))
		must(t, a.Tick())
	}
	if n := a.Bytes(); n > LeastBytes+segmentBytes || n < LeastBytes/2 {
		t.Errorf("%d bytes are kept, the bound is %d", n, LeastBytes)
	}
}

// TestHomeRunsAreKnownOnce over restarts and segments.
func TestHomeRunsAreKnownOnce(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	home := ended(1, time.Second)
	home.Home, home.EndedMs, home.Task = true, -1, 3
	must(t, a.Append([]Attempt{home, home}, node.EventID{Entry: 1, N: 1, Home: 2}))
	if !a.TakeHome(home.Job, 3) || a.TakeHome(home.Job, 4) {
		t.Error("a run is not told from another")
	}
	must(t, a.Append(nil, node.EventID{Entry: 2, N: 1, Home: 2}))
	c.at = c.at.Add(40 * 24 * time.Hour)
	must(t, a.Tick())
	must(t, a.Close())
	a = openTest(t, dir, c, nil)
	if !a.TakeHome(home.Job, 3) || a.TakeHome(home.Job, 3) {
		t.Error("the second run is not known once")
	}
}

func TestAnotherFederationStartsOver(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	must(t, a.Append([]Attempt{ended(1, time.Second)}, node.EventID{Entry: 900, N: 2}))
	must(t, a.Close())
	a = openTest(t, dir, c, func(cfg *Config) { cfg.Federation = "g" })
	if jobs, _ := all(t, a, Query{}); a.Place() != (node.EventID{}) || jobs != "1" {
		t.Errorf("place %v, jobs %s", a.Place(), jobs)
	}
}

func TestOffTakesNothing(t *testing.T) {
	a, err := Open(Config{Scope: Off})
	must(t, err)
	must(t, a.Append([]Attempt{ended(1, 0)}, node.EventID{Entry: 3}))
	must(t, a.Tick())
	if _, err := a.Scan(context.Background(), Query{}, nil); !errors.Is(err, ErrOff) || a.Place().Entry != 3 {
		t.Errorf("%v, place %v", err, a.Place())
	}
	must(t, a.Close())
}

func TestConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]Config{
		"archive.scope":     {Scope: "some"},
		"archive.keep":      {Keep: time.Minute},
		"archive.max_bytes": {MaxBytes: 1},
	} {
		if _, err := Open(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
