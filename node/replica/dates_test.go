package replica

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// datedLog is a log with the dates of its entries.
type datedLog struct {
	entries [][]byte
	at      []time.Time
	term    uint64
}

// add orders an entry, so long after the term's first one.
func (l *datedLog) add(at time.Time, elapsed time.Duration, cmds ...command.Command) {
	b := command.Batch{Term: l.term, Elapsed: elapsed.Milliseconds(), Commands: cmds}
	l.entries, l.at = append(l.entries, b.Append(nil)), append(l.at, at)
}

func (l *datedLog) replay(t *testing.T, r *Replica, from int) {
	t.Helper()
	for i := from; i < len(l.entries); i++ {
		r.Dated(l.at[i])
		if _, err := r.Apply(l.entries[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// dateOf is what people are shown of a log time.
func dateOf(r *Replica, ms int64) time.Time {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.WallOf(ms, time.Time{})
}

var evening = time.Date(2026, 5, 4, 22, 0, 0, 0, time.UTC)

// aNight is a federation that worked for 10 s, stood still over night, and works
// again under a new leader.
func aNight() *datedLog {
	l := &datedLog{term: 1}
	l.add(evening, 0, command.Command{
		ID:   command.ID{Site: "site-1"},
		Body: &command.Genesis{Federation: [16]byte{1}, Params: command.DefaultParams()},
	})
	for i := range 10 {
		l.add(evening.Add(time.Duration(i+1)*time.Second), time.Duration(i+1)*time.Second)
	}
	l.term = 2
	for i := range 10 {
		l.add(evening.Add(10*time.Hour+time.Duration(i)*time.Second), time.Duration(i)*time.Second)
	}
	return l
}

func wantDates(t *testing.T, who string, r *Replica, want map[int64]time.Time) {
	t.Helper()
	for ms, at := range want {
		if got := dateOf(r, ms); got.Sub(at).Abs() > time.Second {
			t.Errorf("%s: log time %d ms is dated %s, want %s", who, ms, got.UTC(), at)
		}
	}
}

// Found by review: an outage of a night moved all dates of before by a night,
// and each broker by another one's.
func TestDatesStayOverAnOutage(t *testing.T) {
	l := aNight()
	dir := t.TempDir()
	r := NewReplica()
	if err := r.KeepDates(dir); err != nil {
		t.Fatal(err)
	}
	l.replay(t, r, 0)
	want := map[int64]time.Time{
		1000: evening.Add(time.Second), 9000: evening.Add(9 * time.Second),
		12_000: evening.Add(10*time.Hour + 2*time.Second), 19_000: evening.Add(10*time.Hour + 9*time.Second),
	}
	wantDates(t, "one that was there", r, want)

	late := NewReplica() // a restart in the morning reads the same log again
	l.replay(t, late, 0)
	wantDates(t, "one that replays the log", late, want)

	var saved uint64
	var snapshot bytes.Buffer
	frozen, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Release()
	if err := frozen.Write(&snapshot); err != nil {
		t.Fatal(err)
	}
	if err := r.SaveDates(&saved); err != nil {
		t.Fatal(err)
	}
	again := NewReplica() // one after the log was cut
	if err := again.KeepDates(dir); err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(&snapshot); err != nil {
		t.Fatal(err)
	}
	next := len(l.entries)
	l.add(evening.Add(34*time.Hour), 10*time.Second)
	l.replay(t, again, next)
	want[20_000] = evening.Add(34 * time.Hour)
	wantDates(t, "one with a snapshot", again, want)

	again.dates.cut(9000) // its data were set back
	wantDates(t, "one set back", again, map[int64]time.Time{1000: want[1000], 12_000: evening.Add(12 * time.Second)})
	again.dates.cut(0)
	if got := dateOf(again, 5); !got.IsZero() {
		t.Errorf("dated %s by nothing", got)
	}
}

func TestDatesAreBounded(t *testing.T) {
	var d dates
	for i := range int64(3 * maxDates) { // an outage an hour, one of them of a week
		at := evening.Add(time.Duration(i) * time.Hour)
		if i >= 100 {
			at = at.Add(7 * 24 * time.Hour)
		}
		d.observe(i*1000, at)
	}
	if len(d.points) != maxDates || d.check() != nil {
		t.Fatalf("%d points, %v", len(d.points), d.check())
	}
	if jump := d.date(100_000).Sub(d.date(99_000)); jump < 7*24*time.Hour {
		t.Errorf("the longest outage was forgotten: %s", jump)
	}
	if got, want := d.date(3*maxDates*1000-1000), evening.Add((3*maxDates-1+7*24)*time.Hour); !got.Equal(want) {
		t.Errorf("the latest date is %s, want %s", got, want)
	}
}

func TestDamagedDates(t *testing.T) {
	for _, text := range []string{
		"", "{", `{"a":1}`, `[{"LogMs":5,"OffsetMs":1},{"LogMs":5,"OffsetMs":1}]`, `[{"LogMs":-1}]`, `[{"LogMs":1,"OffsetMs":9223372036854775807}]`,
		"[" + strings.Repeat(`{"LogMs":1},`, 1<<16) + `{"LogMs":1}]`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, datesFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewReplica()
		if err := r.KeepDates(dir); err == nil || len(r.dates.points) > 0 {
			t.Errorf("%.40q: %v, %v", text, err, r.dates.points)
		}
		r.dates.observe(5, evening)
		if err := r.SaveDates(new(uint64)); err != nil {
			t.Error(err)
		}
		if err := NewReplica().KeepDates(dir); err != nil {
			t.Errorf("after it was rewritten: %v", err)
		}
	}
}
