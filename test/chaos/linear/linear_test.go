package linear

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/test/chaos/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at gives an operation its times, in milliseconds, and an answer.
func at(call, ret int, o Op) Op {
	o.Call, o.Return, o.Answered = time.Duration(call)*time.Millisecond, time.Duration(ret)*time.Millisecond, true
	return o
}

// lost gives it no answer.
func lost(call int, o Op) Op {
	o.Call = time.Duration(call) * time.Millisecond
	return o
}

func set(v int64) Op              { return Op{Kind: SetPolicy, At: "site-1", Value: v} }
func got(site string, v int64) Op { return Op{Kind: GetPolicy, At: site, Value: v} }
func sure(o Op) Op                { o.Current = true; return o }
func of(kind Kind, id string) Op {
	return Op{Kind: kind, At: "site-1", Owner: "site-1", Job: "k1", ID: id, Durable: true}
}

func look(site, id string, p Phase) Op {
	o := of(Look, id)
	o.At, o.Phase = site, p
	return o
}

// TestFindsViolations: each kind that a federation could show is found, in the
// object and at the answer that shows it first.
func TestFindsViolations(t *testing.T) {
	for name, tc := range map[string]struct {
		history []Op
		object  string
		wrong   string // the answer that nothing explains
	}{
		"lost acknowledged submit": {
			[]Op{at(0, 10, of(Submit, "1")), at(20, 30, look("site-1", "", Absent))},
			"job k1 at site-1", "k1 at site-1 is absent",
		},
		"acknowledged as the federation's and not there": {
			[]Op{at(0, 10, of(Submit, "1")), at(20, 30, sure(look("site-2", "", Absent)))},
			"job k1 in the federation", "k1 at site-2 is absent",
		},
		"shown, then gone": {
			[]Op{lost(0, of(Submit, "")), at(5, 10, sure(look("site-2", "1", Live))), at(20, 30, sure(look("site-3", "", Absent)))},
			"job k1 in the federation", "k1 at site-3 is absent",
		},
		"second job under one key": {
			[]Op{at(0, 10, of(Submit, "1")), at(20, 30, of(Submit, "2"))},
			"job k1 at site-1", "submit k1 at site-1: 2",
		},
		"second job after an answer was lost": {
			[]Op{lost(0, of(Submit, "")), at(5, 10, look("site-1", "1", Live)), at(20, 30, of(Submit, "2"))},
			"job k1 at site-1", "submit k1 at site-1: 2",
		},
		"two jobs shown": {
			[]Op{at(0, 10, of(Submit, "1")), at(20, 30, look("site-1", "1", Double))},
			"job k1 at site-1", "k1 at site-1 is double",
		},
		"cancelled job comes back": {
			[]Op{at(0, 10, of(Submit, "1")), at(20, 30, of(Cancel, "1")), at(40, 50, look("site-1", "1", Live))},
			"job k1 at site-1", "k1 at site-1 is live 1",
		},
		"ended job comes back elsewhere": {
			[]Op{at(0, 10, of(Submit, "1")), at(20, 30, sure(look("site-2", "1", Over))), at(40, 50, sure(look("site-3", "1", Live)))},
			"job k1 in the federation", "k1 at site-3 is live 1",
		},
		"stale current read": {
			[]Op{at(0, 10, set(7)), at(20, 30, set(8)), at(40, 50, sure(got("site-2", 7)))},
			"policy of the federation", "policy at site-2 is 7",
		},
		"policy lost": {
			[]Op{at(0, 10, set(7)), at(20, 30, set(8)), at(35, 37, sure(got("site-2", 8))), at(40, 50, sure(got("site-2", 7)))},
			"policy of the federation", "policy at site-2 is 7",
		},
		"policy that nobody set": {
			[]Op{at(0, 10, set(7)), at(20, 30, sure(got("site-2", 9)))},
			"policy of the federation", "policy at site-2 is 9",
		},
		"policy shown before it was set": {
			[]Op{at(0, 10, set(7)), at(20, 30, sure(got("site-2", 8))), lost(40, set(8))},
			"policy of the federation", "policy at site-2 is 8",
		},
		"policy going back at one broker": {
			[]Op{at(0, 10, got("site-2", 7)), at(20, 30, got("site-2", 8)), at(40, 50, got("site-2", 7))},
			"policy at site-2", "policy at site-2 is 7",
		},
		"own write not read": {
			[]Op{at(0, 10, got("site-1", 7)), at(20, 30, set(8)), at(40, 50, got("site-1", 7))},
			"policy at site-1", "policy at site-1 is 7",
		},
		"set again behind its client's back": {
			[]Op{
				lost(0, set(7)), at(20, 25, sure(got("site-2", 7))), at(30, 40, set(8)), at(45, 50, sure(got("site-2", 8))),
				at(60, 70, sure(got("site-3", 7))),
			},
			"policy of the federation", "policy at site-3 is 7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			found, err := Check(tc.history, time.Minute, dir)
			if err != nil || len(found) == 0 {
				t.Fatalf("found %v, %v", found, err)
			}
			hit := false
			for _, v := range found {
				hit = hit || v.Rule == check.Linear && strings.HasPrefix(v.Text, tc.object+": ") &&
					strings.Contains(v.Text, tc.wrong)
			}
			if !hit {
				t.Errorf("want %q in %q, found %v", tc.wrong, tc.object, found)
			}
			if pictures, _ := filepath.Glob(filepath.Join(dir, "linear-*.html")); len(pictures) != len(found) {
				t.Errorf("%d pictures of %d violations", len(pictures), len(found))
			}
		})
	}
}

// TestAllowsWhatMayBe: answers that were lost, reads that may be old, and
// operations at the same time.
func TestAllowsWhatMayBe(t *testing.T) {
	for name, history := range map[string][]Op{
		"a lost submit that never was":  {lost(0, of(Submit, "")), at(10, 20, look("site-1", "", Absent)), at(30, 40, of(Submit, "1"))},
		"a lost submit that was":        {lost(0, of(Submit, "")), at(10, 20, of(Submit, "1")), at(30, 40, look("site-1", "1", Live))},
		"a lost submit that comes late": {lost(0, of(Submit, "")), at(10, 20, sure(look("site-2", "", Absent))), at(30, 40, sure(look("site-2", "1", Live)))},
		"an old read elsewhere":         {at(0, 10, of(Submit, "1")), at(20, 30, look("site-2", "", Absent))},
		"cancel twice": {
			at(0, 10, of(Submit, "1")), at(20, 30, of(Cancel, "1")), at(40, 50, of(Cancel, "1")),
			at(60, 70, look("site-1", "1", Over)),
		},
		"a lost cancel that does nothing": {at(0, 10, of(Submit, "1")), lost(20, of(Cancel, "1")), at(40, 50, look("site-1", "1", Live))},
		"a lost cancel that comes late": {
			at(0, 10, of(Submit, "1")), lost(20, of(Cancel, "1")), at(40, 50, look("site-1", "1", Live)),
			at(60, 70, look("site-1", "1", Over)),
		},
		"the key again after the end": {at(0, 10, of(Submit, "1")), at(20, 30, look("site-1", "1", Over)), at(40, 50, of(Submit, "1"))},
		"two at once, either first":   {at(0, 50, set(7)), at(10, 40, set(8)), at(60, 70, sure(got("site-2", 7)))},
		"a read beside a write": {
			at(0, 10, set(7)), at(20, 50, set(8)), at(30, 35, sure(got("site-2", 8))),
			at(36, 60, sure(got("site-3", 8))),
		},
		"a lost write that comes late":          {at(0, 10, set(7)), lost(20, set(8)), at(30, 40, sure(got("site-2", 7))), at(50, 60, sure(got("site-2", 8)))},
		"an old policy at another broker":       {at(0, 10, set(7)), at(20, 30, set(8)), at(40, 50, got("site-2", 7)), at(60, 70, got("site-2", 8))},
		"an answer that was lost to the client": {at(0, 10, set(7)), lost(20, got("site-2", 0)), lost(30, sure(look("site-2", "", Absent)))},
	} {
		t.Run(name, func(t *testing.T) {
			if found, err := Check(history, time.Minute, t.TempDir()); err != nil || len(found) > 0 {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
}

// TestSubmitKnownToItsOwnerOnly may be unknown elsewhere.
func TestSubmitKnownToItsOwnerOnly(t *testing.T) {
	submit := of(Submit, "1")
	submit.Durable = false
	history := []Op{at(0, 10, submit), at(20, 30, sure(look("site-2", "", Absent))), at(40, 50, sure(look("site-2", "1", Live)))}
	if found, err := Check(history, time.Minute, t.TempDir()); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestGivenUpIsNoPass: a search without enough time is an error.
func TestGivenUpIsNoPass(t *testing.T) {
	var history []Op
	for i := range 200 { // all at once, and a read that none of them explains
		history = append(history, at(0, 1000, set(int64(i+1))), at(0, 1000, sure(got("site-2", int64(i+1)))))
	}
	history = append(history, at(0, 1000, sure(got("site-2", 1_000))))
	if found, err := Check(history, 50*time.Millisecond, t.TempDir()); !errors.Is(err, ErrUndecided) {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestManyLostWritesStayFast: those that nobody saw do not cost anything.
func TestManyLostWritesStayFast(t *testing.T) {
	var history []Op
	for i := range 500 {
		now := 10 * i
		history = append(history, lost(now, set(int64(10_000+i))), at(now, now+5, set(int64(i+1))),
			at(now+6, now+9, sure(got("site-2", int64(i+1)))))
	}
	if found, err := Check(history, time.Minute, t.TempDir()); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestHistoryKeepsUnknownOutcomes until an answer comes.
func TestHistoryKeepsUnknownOutcomes(t *testing.T) {
	now := time.Duration(0)
	h := NewHistory(func() time.Duration { now++; return now })
	first := h.Call(set(7))
	h.Call(set(8))
	first.Return(func(o *Op) { o.Value = 9 })
	all := h.All()
	if len(all) != 2 || !all[0].Answered || all[0].Value != 9 || all[0].Call != 1 || all[0].Return != 3 ||
		all[1].Answered {
		t.Errorf("%+v", all)
	}
	if _, err := Check(all, time.Minute, filepath.Join(os.DevNull, "none")); err != nil {
		t.Error(err)
	}
}

// TestManyLostSubmitsStayFast: one that may have been is enough, and so it is with
// cancels.
func TestManyLostSubmitsStayFast(t *testing.T) {
	var history []Op
	for i := range 100 {
		history = append(history, lost(10*i, of(Submit, "")))
	}
	history = append(history, at(1000, 1010, of(Submit, "1")))
	for i := range 100 {
		history = append(history, lost(1020+i, of(Cancel, "1")), at(1020+i, 1021+i, look("site-1", "1", Live)))
	}
	if found, err := Check(history, time.Minute, t.TempDir()); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
	history = append(history, at(2000, 2010, of(Submit, "2")))
	if found, err := Check(history, time.Minute, t.TempDir()); err != nil || len(found) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestHomeJobIsItsOwnersAlone: it is shown there and nowhere else.
func TestHomeJobIsItsOwnersAlone(t *testing.T) {
	submit := of(Submit, "1")
	submit.Durable = false
	history := []Op{
		at(0, 10, submit), at(12, 15, of(Cancel, "1")), at(20, 30, sure(look("site-1", "1", Over))),
		at(40, 50, sure(look("site-2", "", Absent))),
	}
	if found, err := Check(history, time.Minute, t.TempDir()); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}
