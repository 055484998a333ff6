package sim

import (
	"bytes"
	"slices"
	"testing"
)

// Whatever a log holds, it is refused or played to its end.
func FuzzWorkload(f *testing.F) {
	const rest = " -1 -1 2 7200 -1 1 3 1 -1 1 -1 -1 -1\n"
	for _, seed := range []string{
		"1 0 5 3600 2" + rest + "2 40 5 3600 3" + rest, "1 0 5 1e14 1" + rest, "1 1e14 5 1 1" + rest + "2 0 5 1 1" + rest,
		"-7 0 5 1 1" + rest + "-7 0 5 1 1" + rest, "1 0 5 1 999999999999999" + rest, "1 0.5 5 .1 1" + rest,
	} {
		f.Add([]byte(seed), int64(3), false, false)
		f.Add([]byte(seed), int64(0), true, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, cores int64, unit, background bool) {
		w, err := ReadWorkload(bytes.NewReader(data), "fuzz", nil)
		if err != nil {
			return
		}
		s := DefaultSetup()
		s.Sites, s.Cores = 1, cores
		if !unit {
			s.Unit = 0
		}
		if background {
			s.Scenario = Background
		}
		in, err := w.Instance(&s, 0, 0)
		if err != nil || len(in.Tasks) > 1000 || slices.ContainsFunc(in.Tasks,
			func(t Task) bool { return t.Run > 1e6 || t.Release > 1e6 }) {
			return // it would take long: log time moves a minute in one entry
		}
		in.Obey(Rules{})
		out, err := Play(&in.Case)
		if err != nil {
			return // longer than log time holds
		}
		for i, start := range out.Start {
			if start < in.Tasks[i].Release {
				t.Fatalf("task %d, released at %d, starts at %d", i, in.Tasks[i].Release, start)
			}
		}
	})
}
