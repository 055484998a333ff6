package plausible

import "github.com/cloudshare/cloudshare/fsm"

// maxLooked kinds of tasks and machines are looked at a sample, which is some milliseconds: the state stands meanwhile,
// and members decide how many there are. Where they do not suffice a site's last answer counts; the next sample begins
// elsewhere.
const maxLooked = 1 << 16

// lend counts what each site has lent since the last sample, and what of it lay idle though tasks waited.
func (w *Watch) lend(s *fsm.State) {
	waits := s.Stats().Waiting > 0
	lending := s.Lending()
	left := maxLooked
	for i := range lending {
		l := &lending[(i+w.turn%len(lending))%len(lending)]
		t := w.site(l.Site, w.nowMs)
		idle := waits && l.InUse == 0
		if idle && left >= 0 {
			var fits bool
			if fits, left = s.WaitingWouldFit(l.Site, w.turn, left); left >= 0 {
				t.wouldFit = fits
			}
		}
		if hours := cores(l.MilliCPU) * float64(w.nowMs-t.sampledMs) / msPerHour; t.lent {
			t.lentHours += hours
			if idle && t.wouldFit {
				t.idleHours += hours
			}
		}
		t.lent, t.sampledMs = true, w.nowMs
	}
	w.forgetAbsent()
	w.turn++
}

// forgetAbsent has a site that lends nothing begin again with its next offer.
func (w *Watch) forgetAbsent() {
	for _, t := range w.sites {
		t.lent = t.lent && t.sampledMs == w.nowMs
		t.wouldFit = t.wouldFit && t.lent
	}
}
