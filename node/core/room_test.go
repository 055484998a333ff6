package core

import (
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/inputs"
)

// offered returns the labels with which the site's machine would be offered now.
func (s *rigSite) offered() string {
	o := &command.Offer{}
	s.core.machines.Expose(o, false)
	return string(o.Machines[0].Labels)
}

// TestFullSiteIsAskedAgainOnceItFits: a job for which its executor has no room is handed back once, whatever other
// offers come meanwhile, and again only when it would fit, or now and then.
func TestFullSiteIsAskedAgainOnceItFits(t *testing.T) {
	for name, job := range map[string]string{"staging": inputJob, "outputs only": strings.Replace(bothJob, oneInput+",", "", 1)} {
		r := filesRig(t, 1, 1)
		a, b := r.sites[0], r.sites[1]
		b.files.hold = true
		a.submit(sleepJob, "")
		a.submit(job, "")
		b.hold = true // what has no inputs is refused in the place of its start
		r.settle()
		begun := func() int { return len(b.files.staging) + len(b.asked) }
		refuse := func() {
			for id := range b.files.staging {
				b.missing(id, inputs.Full, "no room for 42 bytes more")
			}
			for _, st := range b.asked {
				b.turn(UnstagedEvent{ID: st.ID, Fault: inputs.Full, Why: "no room for 42 bytes more"})
			}
			b.asked = nil
			r.settle()
		}
		refuse()
		for i := range 100 { // two seconds each
			r.pass(time.Second)
			b.turn(CapacityEvent{"local", []executor.Machine{b.machine()}})
			if i%10 == 0 { // a new offer, for another reason
				b.turn(DiskEvent{Full: node.ErrStorageFull})
				r.settle()
				b.turn(DiskEvent{})
			}
			b.ticks(10)
			r.settle()
		}
		if n := r.task("a.2").Attempt; n > 12 || begun() != 0 {
			t.Errorf("%s: attempt %d with 10 offers, %d begun", name, n, begun())
		}
		if v := r.task("a.2"); v.State != fsm.Queued || v.Losses != 0 {
			t.Errorf("%s: %+v", name, v)
		}
		job2 := command.JobID{Site: "a", Num: 2}
		b.turn(RoomEvent{Room: 1 << 40, Fit: []command.JobID{{Site: "a", Num: 7}, job2}})
		b.ticks(20)
		r.settle()
		if begun() != 1 {
			t.Errorf("%s: with room nothing of it begins", name)
		}
		refuse()
		r.pass(4 * time.Minute)
		b.ticks(20)
		r.settle()
		if begun() != 1 {
			t.Errorf("%s: it is never looked again", name)
		}
	}
}

// TestOffersPromiseTheRoomThereIs: machines are labelled for what other sites' tasks have room for now, at most for
// what they may have; own tasks, which have their own quota, are taken all the same.
func TestOffersPromiseTheRoomThereIs(t *testing.T) {
	r := newRig(t, command.DefaultParams(), 1, 1)
	a, b := r.sites[0], r.sites[1]
	a.lendsFiles(16 << 30)
	b.lendsFiles(16 << 30)
	a.submit(sleepJob, "")
	room := func(bytes int64) {
		b.turn(RoomEvent{Room: bytes})
		r.settle()
	}
	room(4<<30 - 1)
	a.submit(outputJob, "") // of up to 2 GiB
	r.settle()
	if len(b.running) != 0 {
		t.Errorf("without room for its class b runs %v", b.running)
	}
	if labels := b.offered(); !strings.Contains(labels, "files-1g=all.sites") ||
		!strings.Contains(labels, "files-4g=b") || strings.Contains(labels, "files-256g=all") {
		t.Errorf("it offers %s", labels)
	}
	room(1 << 50)
	b.finish(b.only(), 0)
	if labels := b.offered(); !strings.Contains(labels, "files-16g=all.sites") ||
		!strings.Contains(labels, "files-64g=b") {
		t.Errorf("it offers %s", labels)
	}
}
