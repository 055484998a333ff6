package relay

import (
	"testing"
	"time"
)

func TestReminder(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	r := Reminder{Every: time.Minute}
	for i, x := range []struct {
		kind string
		at   int
		due  bool
	}{
		{"a", 1, true},
		{"a", 60, false},
		{"a", 61, true},
		{"b", 62, true},  // another kind is said at once
		{"a", 63, true},  // and the former one again
		{"a", 64, false}, // the pause begins with each
	} {
		if got := r.Due(x.kind, at(x.at)); got != x.due {
			t.Errorf("%d: %q after %d s: due is %t", i, x.kind, x.at, got)
		}
	}
	r.Reset()
	if !r.Due("a", at(65)) {
		t.Error("nothing was forgotten")
	}
	r.Wait("a", at(100))
	if r.Due("a", at(99)) || !r.Due("a", at(100)) {
		t.Error("it did not wait")
	}
	if r = (Reminder{}); !r.Due("", at(1)) || r.Due("", at(10)) || !r.Due("", at(11)) {
		t.Error("the zero value does not remind once in LogEvery")
	}
}
