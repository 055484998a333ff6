package raftlog

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node/coord"
)

// lineage is what members must have in common to talk to each other: the
// federation, and since when they go on together. A federation that was
// recovered from the loss of its quorum is in a new epoch (recover.go), whose id
// is random, so that two survivors that were recovered each by itself differ.
type lineage struct {
	federation [16]byte
	id         [16]byte // of the epoch; Invariant: the federation's in epoch 0
	epoch      uint64
}

// parseLineage reads what request wrote.
func parseLineage(federation, id string, epoch uint64) (line lineage, err error) {
	line.epoch = epoch
	if line.federation, err = parseID(federation); err != nil || id == "" {
		line.id = line.federation
		return line, err
	}
	line.id, err = parseID(id)
	return line, err
}

func parseID(text string) (id [16]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, errors.New("not an id of 16 bytes")
	}
	return [16]byte(b), nil
}

// request returns a question that names the lineage.
func (l lineage) request() joinRequest {
	q := joinRequest{Federation: hex.EncodeToString(l.federation[:]), Epoch: l.epoch}
	if l.epoch > 0 {
		q.Lineage = hex.EncodeToString(l.id[:])
	}
	return q
}

func (m *member) line() (lineage, error) { return parseLineage(m.Federation, m.Lineage, m.Epoch) }

func (m *member) setLine(l lineage) {
	q := l.request()
	m.Federation, m.Epoch, m.Lineage = q.Federation, q.Epoch, q.Lineage
}

// lines returns the lineage, and the one before an unfinished step, which is the
// same if there is none.
func (m *member) lines() (line, before lineage, err error) {
	line, err = m.line()
	switch {
	case err == nil && (m.Former == nil) != (m.Unfinished == ""):
		return line, line, errors.New("unfinished and former do not match")
	case err != nil || m.Former == nil:
		return line, line, err
	}
	before, err = parseLineage(m.Federation, m.Former.Lineage, m.Former.Epoch)
	return line, before, err
}

// beginStep begins a step that leads into a lineage. A step in place of an unfinished
// one has that one's former state, whatever the directory looks like now.
func (m *member) beginStep(step string, into lineage, peers []Peer) {
	if m.Unfinished == "" {
		m.Former = &formerState{Epoch: m.Epoch, Lineage: m.Lineage, Peers: peers}
	}
	m.setLine(into)
	m.Unfinished = step
}

func (m *member) endStep() { m.Unfinished, m.Former = "", nil }

// admits says why members of another lineage are not let in here, at a member
// that is reached at addr: coord.ErrForeign or ErrEpoch.
func (l lineage) admits(o lineage, addr string) error {
	switch {
	case o == l:
		return nil
	case o.federation != l.federation:
		return fmt.Errorf("%w: this is federation %x, not %x", coord.ErrForeign, l.federation, o.federation)
	case o.epoch < l.epoch:
		return o.leftBehindError(l, addr)
	case o.epoch > l.epoch:
		return fmt.Errorf("%w: this member is still of epoch %d, not %d: it is to follow (cloudshare recover --follow)", ErrEpoch, l.epoch, o.epoch)
	}
	return fmt.Errorf("%w: two sites were recovered into epoch %d, each by itself: keep one of them and its followers; "+
		"the others come back to it on empty data by cloudshare invite --again", ErrEpoch, l.epoch)
}

// leftBehindError says that a member's data was left behind by epoch later, and what to do.
func (l lineage) leftBehindError(later lineage, addr string) error {
	return fmt.Errorf("%w: the federation lost its quorum and was recovered into epoch %d, this data is of epoch %d: "+
		"stop the broker, run cloudshare recover --follow %s on its data, and start it again", ErrEpoch, later.epoch, l.epoch, addr)
}

// errorCode returns how an error of admits travels.
func errorCode(err error) string {
	if errors.Is(err, ErrEpoch) {
		return joinEpoch
	}
	return joinForeign
}
