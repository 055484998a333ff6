package daemon

import (
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// told is a handler that notes what it is told.
type told struct {
	executor.Handler
	words []string
}

func (h *told) BrokerStops() { h.words = append(h.words, "the broker stops") }

func (h *told) Close() error {
	h.words = append(h.words, "close")
	return nil
}

// TestHandlersAreForewarned: a broker that is stopped tells those that want to know before it closes anything.
func TestHandlersAreForewarned(t *testing.T) {
	h := &told{}
	p := brokerParts{
		handlers:   []executor.Handler{struct{ executor.Handler }{&told{}}, h},
		endRefresh: func() { h.words = append(h.words, "no more questions") },
	}
	if err := p.stop(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"the broker stops", "no more questions", "close"}; !slices.Equal(h.words, want) {
		t.Errorf("told %q, want %q", h.words, want)
	}
}
