package fsm

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestFilesAreMatched: a job with files goes to a machine that gives everybody's tasks as much room, or its own site's;
// the reasons say so in words, not by the label.
func TestFilesAreMatched(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	lends := func(site string, most int64) {
		o := w.offering(site, 1)
		labels, err := command.LabelsOf(command.FilesLabels(site, most, command.MaxOutputBytes))
		if err != nil {
			t.Fatal(err)
		}
		o.Machines[0].Labels = labels
		w.must(site, o)
	}
	lends("b", 15<<30)
	w.must("c", w.offering("c", 1))
	needs := w.job("a", 1)
	needs.Selectors = []string{command.FilesSelector("a", 5<<30)}
	w.submit("a", needs)
	id := command.JobID{Site: "a", Num: 1}
	const wish = "room for files of up to 16 GiB"
	if j, _ := w.s.Job(id); j.State != Queued ||
		j.Reason != "its job needs "+wish+", which sites b, c do not give (data.lend_max, or no files travel there)" {
		t.Fatalf("%s: %q", j.State, j.Reason)
	}
	v, _ := w.s.Why(id)
	for _, x := range v.Sites[1:] {
		if x.Why != HinderedFiles || x.Why.String() != "files" || x.Lacks != wish+" (data.lend_max, or no files travel there)" {
			t.Errorf("%+v", x)
		}
	}

	own := w.job("b", 1)
	own.Selectors = []string{command.FilesSelector("b", command.MaxOutputBytes)}
	w.submit("b", own)
	if list := w.s.Assignments("b"); len(list) != 1 || list[0].Job.Site != "b" {
		t.Fatalf("b has %+v", list)
	}
	lends("c", 16<<30)
	if list := w.s.Assignments("c"); len(list) != 1 || list[0].Job != id {
		t.Fatalf("c has %+v", list)
	}
}

// TestFilesAmongOtherWishes: room for files is named in words beside what else no machine has all of.
func TestFilesAmongOtherWishes(t *testing.T) {
	w := newWorld(t, params(), "a", "b", "c")
	for site, labels := range map[string]string{"b": "cloudshare/files-1g=all.sites", "c": "gpu=a100"} {
		o := w.offering(site, 1)
		o.Machines[0].Labels = command.Labels(labels)
		w.must(site, o)
	}
	needs := w.job("a", 1)
	needs.Selectors = []string{command.FilesSelector("a", 1), "gpu=a100"}
	w.submit("a", needs)
	const want = "no machine of the federation has all of room for files of up to 1 GiB, gpu=a100; " +
		"nearest: b/m0 lacks gpu=a100 (it has no label gpu)"
	if j, _ := w.s.Job(command.JobID{Site: "a", Num: 1}); j.Reason != want {
		t.Errorf("%q\nwant %q", j.Reason, want)
	}
}
