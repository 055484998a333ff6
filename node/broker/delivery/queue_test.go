package delivery

import (
	"testing"
	"time"
)

// TestOldReasonGoesWithTheNextTry: while outputs came again after a restart of their site, the task said all the time
// that it could not be reached and that they were lost within 58s.
func TestOldReasonGoesWithTheNextTry(t *testing.T) {
	d := &delivery{ctx: t.Context(), why: "its broker cannot be reached"}
	s := &site{later: []*delivery{d}}
	if batch, _ := s.takeDue(time.Now(), Prompt.Batch); len(batch) != 1 || d.why != "" {
		t.Errorf("%d taken, reason %q", len(batch), d.why)
	}
}
