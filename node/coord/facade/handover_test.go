package facade

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHoldOffGrows(t *testing.T) {
	x := Limits{First: 30 * time.Second, Longest: 10 * time.Minute, Hourly: 6}
	begin := time.Unix(1_700_000_000, 0)
	at := func(seconds ...int) (out []time.Time) {
		for _, s := range seconds {
			out = append(out, begin.Add(time.Duration(s)*time.Second))
		}
		return out
	}
	for name, c := range map[string]struct {
		past []time.Time
		now  int
		want time.Duration
	}{
		"the first":                     {nil, 0, 0},
		"at once again":                 {at(0), 0, 30 * time.Second},
		"after the hold-off":            {at(0), 30, 0},
		"the second waits longer":       {at(0, 30), 31, 59 * time.Second},
		"the fourth":                    {at(0, 30, 90), 90, 2 * time.Minute},
		"at most the longest":           {at(0, 30, 90, 210, 450), 450, 8 * time.Minute},
		"an hour has so many":           {at(0, 30, 90, 210, 450, 930), 930, 3600*time.Second - 930*time.Second},
		"and then one goes":             {at(0, 30, 90, 210, 450, 930), 3600, 0},
		"all are forgotten in the end":  {at(0, 30, 90, 210, 450, 930), 930 + 3600, 0},
		"with many only the hour binds": {at(1, 2, 3, 4, 5, 6, 7, 8, 9), 9, 3595 * time.Second},
	} {
		if got := x.Holds(c.past, begin.Add(time.Duration(c.now)*time.Second)); max(got, 0) != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// However often somebody wants to, an hour has no more attempts than its limit.
func TestAnHourHasSoManyAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Attempts{Limits: Limits{
			First:   time.Duration(rapid.IntRange(1, 100).Draw(t, "first")) * time.Second,
			Longest: time.Duration(rapid.IntRange(100, 1000).Draw(t, "longest")) * time.Second,
			Hourly:  rapid.IntRange(1, 20).Draw(t, "hourly"),
		}}
		now := time.Unix(1_700_000_000, 0)
		var made []time.Time
		for _, wait := range rapid.SliceOfN(rapid.IntRange(0, 900), 1, 100).Draw(t, "waits") {
			now = now.Add(time.Duration(wait) * time.Second)
			if !a.Due(now) {
				continue
			}
			a.Note(now)
			made = append(made, now)
			if n := len(made) - a.Limits.Hourly; n > 0 && now.Sub(made[n-1]) < time.Hour {
				t.Fatalf("%d attempts since %v", a.Limits.Hourly+1, made[n-1])
			}
		}
	})
}
