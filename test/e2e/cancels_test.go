package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// cancelClients ask at once, more than may wait for one job's cancellation.
	cancelClients = 64
	// manyCancels are asked for; each took some kilobytes for good.
	manyCancels = 10_000
	// cancelsTake at most, in MiB, beside what the broker needs anyway.
	cancelsTake = 64
)

// Found by review: cancellations that no quorum can order were kept without bound, as
// many as somebody asked for. Of very many for one job a few wait, and are told in the
// end that there is no quorum; all others are refused at once, the broker's memory
// does not grow with them, and the job is cancelled once there is a quorum.
func TestCancelsWithoutAQuorumAreBounded(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	_, others := leaderAndOthers(t, fed)
	left := others[0]
	a := submit(t, left, testbed.Spec{Command: []string{"true"}, Sites: &testbed.Where{Only: []string{"nowhere"}}})
	var dead []*testbed.Site
	for _, s := range fed.Sites {
		if s != left {
			dead = append(dead, s)
			must(t, s.Kill())
		}
	}
	before, err := left.ResidentMiB()
	must(t, err)

	var asked, waited, refused atomic.Int64
	ctx := within(t)
	var clients sync.WaitGroup
	for range cancelClients {
		clients.Go(func() {
			for asked.Add(1) <= manyCancels {
				switch err := refusal(ctx, left, a.ID); {
				case err == nil:
					refused.Add(1)
				case errors.Is(err, errWaited):
					waited.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	after, err := left.ResidentMiB()
	must(t, err)
	t.Logf("%d refused, %d waited, %.0f MiB became %.0f", refused.Load(), waited.Load(), before, after)
	if refused.Load() < manyCancels*9/10 || waited.Load() == 0 {
		t.Errorf("%d of %d were refused and %d waited", refused.Load(), manyCancels, waited.Load())
	}
	if after > before+cancelsTake {
		t.Errorf("the broker took %.0f MiB, and takes %.0f", before, after)
	}

	must(t, fed.Restart(within(t), dead...))
	_, err = left.AwaitJob(within(t), a.ID, "cancelled")
	must(t, err)
	agree(t, fed)
}

// errWaited: a cancellation was taken, and there was no quorum for it in time.
var errWaited = errors.New("it waited for a quorum")

// refusal asks to cancel a job; nil: it was refused, since too many wait already.
func refusal(ctx context.Context, s *testbed.Site, id string) error {
	var refused *testbed.HTTPError
	err := s.Cancel(ctx, id)
	switch {
	case !errors.As(err, &refused):
		return fmt.Errorf("cancel without a quorum: %w", errors.Join(err, errUnexpected))
	case refused.Status == http.StatusTooManyRequests && refused.Problem.Title != "":
		return nil
	case refused.Status == http.StatusServiceUnavailable:
		return errWaited
	}
	return fmt.Errorf("cancel without a quorum: %w", err)
}

var errUnexpected = errors.New("no answer that refuses it")
