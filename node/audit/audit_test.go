package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o Options) *Log {
	t.Helper()
	o.Failed = func(err error) { t.Error(err) }
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func add(t *testing.T, l *Log, user string, targets ...string) {
	t.Helper()
	e := Entry{Time: time.Unix(1, 0).UTC(), User: user, Role: "user", Action: "POST /v1/jobs", Targets: targets, Status: 202}
	if err := l.Append(e, false); err != nil {
		t.Fatal(err)
	}
}

// read lists users and targets.
func read(t *testing.T, l *Log, q Query) string {
	t.Helper()
	list, err := l.Read(q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.User+strings.Join(e.Targets, ""))
	}
	return strings.Join(out, " ")
}

func TestWhoDidWhat(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Dir: dir})
	add(t, l, "alice", "a.1")
	add(t, l, "bob", "a.2")
	add(t, l, "alice", "a.2/3,5")
	for _, again := range []bool{false, true} {
		for who, want := range map[string]string{
			"": "alicea.2/3,5 boba.2 alicea.1", "alice": "alicea.2/3,5 alicea.1", "a.2": "alicea.2/3,5 boba.2", "carol": "",
		} {
			if got := read(t, l, Query{Who: who, Limit: 10}); got != want {
				t.Errorf("%q, again %t: %s", who, again, got)
			}
		}
		if got := read(t, l, Query{Limit: 1}); got != "alicea.2/3,5" {
			t.Errorf("the newest: %s", got)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Read(Query{Limit: 1}); !errors.Is(err, errClosed) {
			t.Errorf("a closed one: %v", err)
		}
		l = open(t, Options{Dir: dir})
	}
}

// A line that a crash has cut stays alone; the files are nobody else's to read.
func TestACutLineStaysAlone(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Dir: dir})
	add(t, l, "alice")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := fileName(dir, 1)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(path, append(data, data[:len(data)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	l = open(t, Options{Dir: dir})
	add(t, l, "bob")
	if got := read(t, l, Query{Limit: 10}); got != "bob alice" {
		t.Errorf("read %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestTheRecordIsBounded(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Dir: dir, FileBytes: 500, Files: 3})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 50 {
				if err := l.Append(Entry{User: fmt.Sprintf("u%d-%d", w, i)}, i%10 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	add(t, l, "last")
	if got := read(t, l, Query{Limit: 2}); !strings.HasPrefix(got, "last ") {
		t.Errorf("the newest are %s", got)
	}
	if list, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(list) != 3 {
		t.Errorf("%v %v", list, err)
	}
}

// TestEntriesAreWrittenTogether: the writer sleeps while entries come that nobody waits for, and one that somebody
// waits for is written at once, with those before it.
func TestEntriesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		lines := func() int {
			synctest.Wait()
			data, err := os.ReadFile(fileName(dir, 1))
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Count(data, []byte("\n"))
		}
		began := time.Now()
		for i, step := range []struct {
			durable bool
			pause   time.Duration
			lines   int
		}{{false, 0, 0}, {false, writeEvery - 1, 0}, {false, 1, 3}, {false, 0, 3}, {true, 0, 5}, {true, 0, 6}} {
			if err := l.Append(Entry{User: "alice"}, step.durable); err != nil {
				t.Fatal(err)
			}
			<-time.After(step.pause)
			if n := lines(); n != step.lines {
				t.Errorf("step %d, after %s: %d lines, want %d", i, time.Since(began), n, step.lines)
			}
		}
		if err := l.Append(Entry{User: "bob"}, false); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if n := lines(); n != 7 || time.Since(began) != writeEvery {
			t.Errorf("%d lines after %s", n, time.Since(began))
		}
	})
}

// BenchmarkAppend is what a request pays that nobody waits for.
func BenchmarkAppend(b *testing.B) {
	l, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	e := Entry{
		Time: time.Unix(1, 0), User: "alice", Role: "user", Token: "0123456789abcdef",
		Action: "POST /v1/jobs", Targets: []string{"site-1.123456"}, Status: 202,
	}
	for b.Loop() {
		if err := l.Append(e, false); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
