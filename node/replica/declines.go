package replica

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxDeclines bounds the jobs of which it is known what sites said of them. With
	// maxDeclineSites words of command.MaxDetail bytes each they take some 5 MiB.
	maxDeclines = 4096
	// maxDeclineSites bounds the sites of one job.
	maxDeclineSites = 4
)

// declines are the words of the sites that handed tasks back. They are no part of
// the state: they are read from its events, so a broker that began with a snapshot
// does not know what was said before it.
type declines struct {
	// by job, what was said last at the end; each site once.
	by map[command.JobID][]node.Declined
	// order holds the jobs in the order of their first decline, ended ones too.
	order []command.JobID
}

// handleEvent takes an event.
func (d *declines) handleEvent(e *fsm.Event) {
	switch {
	case e.Kind == fsm.EventJobEnded:
		delete(d.by, e.Job)
	case e.Kind == fsm.EventTaskRequeued && (e.End == fsm.EndDeclined || e.End == fsm.EndUnopened) &&
		e.Site != "" && e.Reason != "":
		d.add(e.Job, node.Declined{Site: e.Site, Reason: e.Reason})
	}
}

func (d *declines) add(job command.JobID, word node.Declined) {
	words, known := d.by[job]
	if !known {
		d.enlist(job)
	}
	words = slices.DeleteFunc(words, func(w node.Declined) bool { return w.Site == word.Site })
	if len(words) == maxDeclineSites {
		words = slices.Delete(words, 0, 1)
	}
	d.by[job] = append(words, word)
}

// enlist makes room for one more job: the oldest goes.
func (d *declines) enlist(job command.JobID) {
	if d.by == nil {
		d.by = map[command.JobID][]node.Declined{}
	}
	gone := func(id command.JobID) bool { _, here := d.by[id]; return !here }
	if len(d.order) >= 2*maxDeclines {
		d.order = slices.DeleteFunc(d.order, gone)
	}
	for len(d.by) >= maxDeclines {
		delete(d.by, d.order[0])
		d.order = d.order[1:]
	}
	d.order = append(d.order, job)
}

// Declined returns what sites said that handed back tasks of a job, what was said last
// at the end.
func (f *Feed) Declined(job command.JobID) []node.Declined {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.declines.by[job])
}

// LastDecline returns the last word of a site that handed back a task of the job.
func (f *Feed) LastDecline(job command.JobID) (node.Declined, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	words := f.declines.by[job]
	if len(words) == 0 {
		return node.Declined{}, false
	}
	return words[len(words)-1], true
}
