package sim

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/mem"
)

// maxCall is how many commands a site proposes in one call; more are several
// calls, as at a live broker, and stand in the same entry.
const maxCall = 32

// order is the federation's log: coord/mem, with a member for each site.
type order struct {
	group *mem.Group
	logs  []*mem.Log // by site
	calls []mem.Call
}

// newOrder begins the log of so many sites. Sites beyond the states share the
// first one's replica.
func newOrder(sites int, nowMs func() int64, states ...*fsm.State) (*order, error) {
	o := &order{group: mem.New(nowMs)}
	first := &replica{state: states[0]}
	for i := range sites {
		var m coord.Machine = shared{first}
		switch {
		case i == 0:
			m = first
		case i < len(states):
			m = &replica{state: states[i]}
		}
		l, err := o.group.Open(SiteName(i), m)
		if err != nil {
			return nil, fmt.Errorf("order entries: %w", err)
		}
		o.logs = append(o.logs, l)
	}
	return o, nil
}

// propose adds to the next entry what a site proposes.
func (o *order) propose(site int, cmds []command.Command) {
	for len(cmds) > 0 {
		n := min(len(cmds), maxCall)
		o.calls = append(o.calls, mem.Call{Log: o.logs[site], Commands: cmds[:n]})
		cmds = cmds[n:]
	}
}

// entry orders what was proposed, with nothing proposed an idle tick, and returns
// the results in the order of the proposals.
func (o *order) entry() ([]command.Result, error) {
	idle := len(o.calls) == 0
	byCall, err := o.group.Together(o.calls...)
	o.calls = o.calls[:0]
	if err != nil {
		return nil, fmt.Errorf("order an entry: %w", err)
	}
	if idle {
		return nil, o.logs[0].Err()
	}
	if len(byCall) == 1 {
		return byCall[0], nil
	}
	return slices.Concat(byCall...), nil
}

var errBehind = errors.New("a simulated member fell behind")

// replica is a state as the log drives it: from the bytes of each entry.
type replica struct {
	state   *fsm.State
	results []command.Result // of the newest entry
	err     error
}

var (
	_ coord.Machine    = (*replica)(nil)
	_ coord.Unfinished = (*replica)(nil)
)

// Apply implements coord.Machine.
func (r *replica) Apply(entry []byte) ([]command.Result, error) {
	batch, err := command.DecodeBatch(entry)
	if err == nil {
		r.results, err = r.state.Apply(batch)
	}
	r.err = err
	return r.results, err
}

// Pending implements coord.Unfinished.
func (r *replica) Pending() bool { return r.state.Pending() }

// Snapshot implements coord.Machine.
func (r *replica) Snapshot() (coord.Snapshot, error) { return r.state.Snapshot(), nil }

// Restore implements coord.Machine. Every member applies an entry with the call
// that orders it, so none is ever behind a snapshot.
func (r *replica) Restore(io.Reader) error { return errBehind }

// Result implements coord.Machine.
func (r *replica) Result(id command.ID) (command.Result, bool) { return r.state.Result(id) }

// Index implements coord.Machine.
func (r *replica) Index() uint64 { return r.state.Index() }

// Admit implements coord.Machine: whoever the case names is there from the start.
func (r *replica) Admit(string, [16]byte) error { return nil }

// shared is the machine of a site that looks at the first one's replica: it has
// just applied the entry.
type shared struct{ *replica }

var _ coord.Machine = shared{}

// Apply implements coord.Machine.
func (s shared) Apply([]byte) ([]command.Result, error) { return s.results, s.err }
