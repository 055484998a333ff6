package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Found by use: an unknown site in --only was not named, and so looked like one that is full.
func TestUnknownSitesAreNamed(t *testing.T) {
	w := newWorld(t, params(), "a", "site-one", "site-two")
	w.must("a", w.offering("a", 1))
	only := func(names ...string) command.JobSpec {
		j := w.job("a", 1)
		j.Only = names
		return j
	}
	w.submit("a", only("site-ohne"), only("a", "nowhere", "site-ohne"), only("a"))
	for id, want := range map[uint64]string{
		1: "no present site is allowed by its sites.only and sites.not; sites.only names site-ohne, which no site of the federation is called: is site-one meant?",
		2: "waiting for its turn and a free machine; sites.only names nowhere, site-ohne, which no site of the federation is called",
		3: "waiting for its turn and a free machine",
	} {
		if j, _ := w.s.Job(command.JobID{Site: "a", Num: id}); j.State == Queued && j.Reason != want {
			t.Errorf("job %d: %q, want %q", id, j.Reason, want)
		}
	}
	v, _ := w.s.Why(command.JobID{Site: "a", Num: 1})
	if x := v.Sites[len(v.Sites)-1]; len(v.Sites) != 4 || x.Site != "site-ohne" || x.Why != HinderedUnknown ||
		x.Near != "site-one" || x.Why.String() != "unknown" {
		t.Errorf("%+v", v.Sites)
	}
	if j, _ := w.s.Job(command.JobID{Site: "a", Num: 2}); j.State == Queued && len(v.Sites) == 0 {
		t.Error("nothing is known of its sites")
	}
}

// Found by use: "short of 0 cores, 1 GPU" and "short of 0 cores, 998871 MiB".
func TestResourcesNameWhatThereIs(t *testing.T) {
	for want, r := range map[string]command.Resources{
		"0 cores":                 {},
		"1 GPU":                   {GPU: 1},
		"975.5 GiB":               {MemMiB: 998_871},
		"2 cores, 2 GiB, 3 GPUs":  {MilliCPU: 2000, MemMiB: 2048, GPU: 3},
		"1.5 cores, 64 MiB":       {MilliCPU: 1500, MemMiB: 64},
		"1 core, 1.5 GiB":         {MilliCPU: 1000, MemMiB: 1536},
		"0.001 cores, 1023 MiB":   {MilliCPU: 1, MemMiB: 1023},
		"100000 cores, 953.7 TiB": {MilliCPU: 100_000_000, MemMiB: command.MaxMemMiB},
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}
