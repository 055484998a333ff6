package relay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Beside the encoded command.Batch of an entry stands a header
// that the state never sees: the term the leader stamped, and whose calls the
// commands are, so that every member resolves its own proposals by position,
// without decoding the batch a second time.
//
//	version 1 · uvarint term · uvarint n · n × (8 bytes origin · uvarint seq · uvarint commands)

const headerVersion = 1

// ErrHeader is said of bytes that are no header of this version.
var ErrHeader = errors.New("malformed entry header")

// call names one Propose call: the origin is a random number of the Log
// instance, the sequence number counts its calls.
type call struct {
	origin, seq uint64
	commands    int
}

// Header says of an entry which term's leader stamped it, and whose calls it holds.
type Header struct {
	Term  uint64
	calls []call
}

// NoCalls returns the header of an entry whose commands are nobody's calls.
func NoCalls(term uint64, commands int) Header {
	return Header{Term: term, calls: []call{{commands: commands}}}
}

// Append encodes the header.
func (h *Header) Append(dst []byte) []byte {
	dst = append(dst, headerVersion)
	dst = binary.AppendUvarint(dst, h.Term)
	dst = binary.AppendUvarint(dst, uint64(len(h.calls)))
	for _, c := range h.calls {
		dst = binary.BigEndian.AppendUint64(dst, c.origin)
		dst = binary.AppendUvarint(dst, c.seq)
		dst = binary.AppendUvarint(dst, uint64(c.commands))
	}
	return dst
}

// Commands returns how many commands the entry holds.
func (h *Header) Commands() (n int) {
	for _, c := range h.calls {
		n += c.commands
	}
	return n
}

// Of returns the header of an entry of which the state has made these results: of no calls, if the header says of
// another number of commands than there are. A leader that wrote it so stops nobody: whose calls are in the entry finds
// them by their commands' ids, or sends them again (Calls.Tick, Calls.LeadChanged).
func (h *Header) Of(results []command.Result) *Header {
	if h.Commands() == len(results) {
		return h
	}
	return &Header{Term: h.Term}
}

// ParseHeader reads what Append wrote. into is reused.
func ParseHeader(b []byte, into *Header) error {
	if len(b) == 0 || b[0] != headerVersion {
		return fmt.Errorf("%w: no version %d header", ErrHeader, headerVersion)
	}
	d := NewDecoder(b[1:])
	into.Term = d.Uvarint()
	n := d.Count(MaxEntryCommands+1, 10)
	into.calls = into.calls[:0]
	for range n {
		c := call{origin: d.Uint64(), seq: d.Uvarint()}
		c.commands = int(min(d.Uvarint(), MaxCallCommands+1))
		into.calls = append(into.calls, c)
	}
	if !d.Done() {
		return fmt.Errorf("%w: %d bytes", ErrHeader, len(b))
	}
	return nil
}
