package broker

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/core"
)

// lines is a log that a test reads while its broker writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestUnjustLossIsTold: the leader declares a site lost that has a lease. The site counts that, names the leader, and
// comes back by itself.
func TestUnjustLossIsTold(t *testing.T) {
	sites := startSites(t, 1, 1)
	a, b := sites[0], sites[1]
	out := &lines{}
	b.stop(t)
	logger := zerolog.New(out)
	b.logger = &logger
	b.start(t)
	before := b.Status(false).Incarnation
	a.post(core.VerdictEvent{Verdicts: core.Verdicts{
		Term: a.log.Status().Term, Lost: []coord.Renewal{{Site: b.name, Incarnation: before}},
	}})
	b.await(t, func(s *fsm.State) bool {
		state, incarnation := s.SiteState(b.name)
		return state == fsm.Alive && incarnation > before
	})
	if n := b.Metrics(t.Context()).UnjustLosses; n != 1 {
		t.Errorf("%d unjust losses", n)
	}
	if text := out.String(); !strings.Contains(text, `"lead":"site-1"`) || !strings.Contains(text, "while its lease was valid") ||
		!strings.Contains(text, "cloudshare guide operator") {
		t.Errorf("it says\n%s", text)
	}
	if n := a.Metrics(t.Context()).UnjustLosses; n != 0 {
		t.Errorf("%d unjust losses at the leader", n)
	}
}

// TestLossBehindTheLeaseIsJust: a site whose lease has ended when it hears of its loss was not wronged. It is stopped
// like a process with SIGSTOP: its turn began in time, and ends too late.
func TestLossBehindTheLeaseIsJust(t *testing.T) {
	b := startSites(t, 1)[0]
	b.performNow(&core.Effects{LostBefore: executor.Boottime()})
	if n := b.Metrics(t.Context()).UnjustLosses; n != 0 {
		t.Errorf("%d unjust losses", n)
	}
	b.performNow(&core.Effects{LostBefore: executor.Boottime() + int64(1e12)})
	if n := b.Metrics(t.Context()).UnjustLosses; n != 1 {
		t.Errorf("%d unjust losses of a lease that goes on", n)
	}
}
