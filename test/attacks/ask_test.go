//go:build attacks

package attacks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// rejected is what the leader says of a call that it will never order.
const rejected = intruder.Rejected

var (
	errNotYet = errors.New("not yet")
	jsonBody  = http.Header{"Content-Type": {"application/json"}}
)

func isRefused(err error) bool { return errors.Is(err, intruder.ErrRemoveRefused) }

func votePath(m testbed.Motion) string { return fmt.Sprintf("/v1/motions/%d/vote", m.Number) }

// notLeading is a site that does not lead.
func notLeading(t *testing.T) *testbed.Site {
	t.Helper()
	lead := leader(t)
	for _, s := range shared.Sites {
		if s != lead {
			return s
		}
	}
	return nil
}

// cancel ends a job, also when a test is over.
func cancel(t *testing.T, s *testbed.Site, id string) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	if _, _, err := s.Do(ctx, http.MethodDelete, "/v1/jobs/"+id, nil, nil); err != nil {
		t.Errorf("cancel %s: %v", id, err)
	}
}
