package plausible

import "github.com/cloudshare/cloudshare/fsm"

// maxAsked sites a sample are asked whether a waiting task would fit; the others' last answers count.
const maxAsked = 32

// lend counts what each site has lent since the last sample, and what of it lay idle though tasks waited.
func (w *Watch) lend(s *fsm.State) {
	waits := s.Stats().Waiting > 0
	lending := s.Lending()
	for i := range lending {
		l := &lending[i]
		t := w.site(l.Site, w.nowMs)
		idle := waits && l.InUse == 0
		if idle && w.asks(i, len(lending)) {
			t.wouldFit = s.WaitingWouldFit(l.Site)
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
	w.turn += maxAsked
}

// asks reports whether the i-th of n sites is asked this time.
func (w *Watch) asks(i, n int) bool { return n <= maxAsked || (i-w.turn%n+n)%n < maxAsked }

// forgetAbsent has a site that lends nothing begin again with its next offer.
func (w *Watch) forgetAbsent() {
	for _, t := range w.sites {
		t.lent = t.lent && t.sampledMs == w.nowMs
		t.wouldFit = t.wouldFit && t.lent
	}
}
