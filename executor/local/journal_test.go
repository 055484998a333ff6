package local

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// adopting is a handler that can adopt slots, and start nothing.
func adopting(t *testing.T) *Handler {
	t.Helper()
	h := &Handler{
		cfg: Config{Keeping: attempts.Keeping{Dir: t.TempDir()}}, slots: map[string]*slot{},
		use: attempts.NewRoom(machineName, 1, 100, []int{0}),
	}
	h.aside = attempts.NewAside(h.cfg.Keeping)
	var err error
	if h.attempts, err = attempts.NewSet[*work](&h.mu, h.cfg.Keeping, h.use.Release, h.shelf()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.attempts.Close()
		h.life.Wait()
	})
	return h
}

// adoptJournal adopts a slot that has left that journal.
func (h *Handler) adoptJournal(t *testing.T, name string, journal []byte) {
	t.Helper()
	dir := filepath.Join(h.cfg.Dir, "slots", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal"), journal, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.adoptSlot(name); err != nil {
		t.Fatal(err)
	}
}

// TestAttemptInTwoSlots: an attempt whose first supervisor died before it was handed over
// stands in two journals. Whichever is read first, what the second has done counts.
func TestAttemptInTwoSlots(t *testing.T) {
	task := shell(1, "exit 3")
	text := func(all ...line) (b []byte) {
		for _, l := range all {
			one, err := l.text()
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, one...)
		}
		return b
	}
	ask, up := line{Ask: &asked{Task: task}}, line{Up: &served{}}
	done := line{End: &ended{Name: task.ID.String(), Result: executor.Result{Cause: executor.Exited, ExitCode: 3}}}
	journals := map[string][]byte{"unserved": text(ask), "first": text(up, ask), "second": text(up, ask, done)}
	for _, order := range [][]string{{"first", "second"}, {"second", "first"}, {"unserved", "second"}, {"second", "unserved"}} {
		h := adopting(t)
		for _, name := range order {
			h.adoptJournal(t, name, journals[name])
		}
		h.mu.Lock()
		states, err := h.attempts.Adopted()
		h.mu.Unlock()
		if err != nil || len(states) != 1 || states[0].Ended == nil || states[0].Ended.Cause != executor.Exited ||
			states[0].Ended.ExitCode != 3 {
			t.Errorf("%v: got %+v, %v", order, states, err)
		}
	}
}

// FuzzAdoptJournal: whatever a slot's journal holds, Adopt takes it or says
// why not, and what it takes has an end.
func FuzzAdoptJournal(f *testing.F) {
	f.Add([]byte(`{"ask":{"task":{"Job":"a","Task":1,"Attempt":1,"Token":1}}}` + "\n" + `{"end":{"name":"a-1-1-1","out":5}}`))
	f.Add([]byte(`{"ask":{"task":{"Job":"a","Task":1}}}` + "\n" + `{"run":{"name":"a-1-0-0"}}` + "\n" + `{"run":{"name":"a-1-0-0"}}`))
	f.Add([]byte(`{"ask":{"task":{"Job":"../x"}}}` + "\n" + `{"drop":"a"}` + "\n" + `{"void":"a"}`))
	f.Add([]byte("\x00\xff{\n\n{\"ask\":null}\n{\"end\":{}}"))
	f.Add([]byte(`{"ask":{"task":{"Job":"a","Need":{"MilliCPU":9223372036854775807}},"cpus":[-1,99999999]}}`))
	f.Fuzz(func(t *testing.T, journal []byte) {
		h := adopting(t)
		h.adoptJournal(t, "s", journal)
		h.mu.Lock()
		states, err := h.attempts.Adopted()
		h.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range states {
			if st.Running || st.Ended == nil || !attempts.ValidName(st.ID.String()) {
				t.Errorf("got %+v, want an end: its supervisor is dead", st)
			}
		}
	})
}

// TestJournalSurvivesATornLine: a line cut by a full disk or a crash costs
// itself only.
func TestJournalSurvivesATornLine(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "journal"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err = f.WriteString(`{"end":{"name":"to`); err != nil {
		t.Fatal(err)
	}
	if _, err = appendLine(f, line{End: &ended{Name: "whole", Result: executor.Result{ExitCode: 3}}}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines, err := readJournal(bytes.NewReader(b))
	if err != nil || len(lines) != 1 || lines[0].End.Name != "whole" || lines[0].End.Result.ExitCode != 3 {
		t.Errorf("got %+v, %v; want the whole line", lines, err)
	}
}
