package mem

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Call is what one member proposes at a moment; see [Group.Together].
type Call struct {
	Log      *Log
	Commands []command.Command
}

// maxHeader is more than a batch needs beside its commands, in bytes.
const maxHeader = 64

// Together orders calls of several members as if all of them had waited for the
// next entry: in this order, in one entry as long as that is one (command.MaxBatch,
// command.MaxCommands), and returns each call's results; without a call it is an idle
// entry, as Tick's. It never waits: who plays all
// the members, as the simulator does, needs no goroutine for it, and the same
// calls make the same entries. What members have applied is compacted now and
// then, so that a long run takes bounded memory.
//
// Errors: coord.ErrRefused and nothing was ordered, or the proposing member did
// not apply its call (coord.ErrUnknown).
func (g *Group) Together(calls ...Call) ([][]command.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	made, err := g.together.encode(calls)
	if err != nil {
		return nil, err
	}
	g.flush() // what waits already goes first
	for i, c := range made {
		if c.state() != orderable {
			return nil, fmt.Errorf("propose call %d together: %w: %w: site %s reaches none", i, coord.ErrRefused, coord.ErrNoLead, c.from.site)
		}
	}
	before := g.last()
	if len(made) == 0 && g.lead != "" {
		g.append(nil)
		g.deliver()
	}
	g.pack(made, command.MaxCommands, command.MaxBatch-maxHeader)
	for i := before - g.base; i < uint64(len(g.entries)); i++ {
		g.entries[i].calls = nil // settled, or given up below
	}
	results := make([][]command.Result, len(made))
	for i, c := range made {
		if !c.ended {
			return nil, fmt.Errorf("propose call %d together: %w: site %s has not applied it: %w", i, coord.ErrUnknown, c.from.site, c.from.behind())
		}
		results[i] = c.results
	}
	return results, g.trim()
}

// scratch is the memory of the calls that Together orders; nothing keeps them
// once it has returned.
type scratch struct {
	calls []call
	made  []*call
	buf   []byte
}

// encode makes calls of what is proposed.
func (m *scratch) encode(calls []Call) ([]*call, error) {
	m.calls = slices.Grow(m.calls[:0], len(calls))[:len(calls)]
	m.made, m.buf = m.made[:0], m.buf[:0]
	for i := range calls {
		c := &m.calls[i]
		*c = call{cmds: c.cmds[:0]}
		buf, err := calls[i].Log.encode(c, calls[i].Commands, m.buf)
		if err == nil && c.term != 0 {
			err = errAlone
		}
		if err != nil {
			return nil, fmt.Errorf("propose call %d together: %w: %w", i, coord.ErrRefused, err)
		}
		m.buf = buf
		m.made = append(m.made, c)
	}
	return m.made, nil
}

// keep is how many bytes of entries Together leaves in memory at least, before it
// replaces them by a snapshot.
const keep = 1 << 20

// trim compacts once the entries take twice the memory of what replaces them.
//
// REQUIRES: g.mu held.
func (g *Group) trim() error {
	if g.kept <= max(keep, 2*len(g.snapshot)) {
		return nil
	}
	return g.compact()
}

// behind says why an ordered call has no result.
//
// REQUIRES: g.mu held.
func (l *Log) behind() error {
	if l.err != nil {
		return l.err
	}
	return errBehind
}

var (
	errAlone  = errors.New("a site loss is proposed by itself")
	errBehind = errors.New("it is cut off or lags")
)
