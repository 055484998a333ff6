package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// Bounds of what is in flight on a pipe. The requests are above what the WAN profile has entries in flight, and notices
// and empty requests beside; entries and bytes are those of one large request.
const (
	maxFlights       = 128
	maxFlightEntries = MaxEntries
	maxFlightBytes   = maxAppendBytes
)

// flight is one append request on a pipe.
type flight struct {
	args  *raft.AppendEntriesRequest
	resp  *raft.AppendEntriesResponse
	start time.Time
	round uint64 // see confirm.go
	size  int    // bytes of its entries
	ours  bool   // a notice: raft does not know of it
	done  chan struct{}
	err   error // set before done is closed
}

var _ raft.AppendFuture = (*flight)(nil)

func newFlight(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse, ours bool) *flight {
	f := &flight{args: args, resp: resp, ours: ours, done: make(chan struct{})}
	for _, e := range args.Entries {
		f.size += len(e.Data) + len(e.Extensions)
	}
	return f
}

// answeredFlight returns one that is answered without having been sent.
func answeredFlight(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) *flight {
	f := newFlight(args, resp, false)
	f.end(nil)
	return f
}

// Error implements raft.Future: it waits for the answer.
func (f *flight) Error() error {
	<-f.done
	return f.err
}

// Start implements raft.AppendFuture.
func (f *flight) Start() time.Time { return f.start }

// Request implements raft.AppendFuture.
func (f *flight) Request() *raft.AppendEntriesRequest { return f.args }

// Response implements raft.AppendFuture.
func (f *flight) Response() *raft.AppendEntriesResponse { return f.resp }

// endsReader reports whether raft's reader leaves at the answer: a refusal, or one of a newer term, whatever else that
// says.
func (f *flight) endsReader() bool { return !f.resp.Success || f.resp.Term > f.args.Term }

func (f *flight) end(err error) {
	f.err = err
	close(f.done)
}

// window is what is in flight on a pipe. Answers come in the order of the requests.
type window struct {
	flights []*flight // the oldest first
	entries int       // Invariant: the sum over flights
	bytes   int       // Invariant: the sum over flights
}

// hasRoom reports whether a request may be sent now. One that is larger than any bound is sent alone.
func (w *window) hasRoom(f *flight) bool {
	return len(w.flights) == 0 || len(w.flights) < maxFlights &&
		w.entries+len(f.args.Entries) <= maxFlightEntries && w.bytes+f.size <= maxFlightBytes
}

func (w *window) push(f *flight) {
	w.flights = append(w.flights, f)
	w.entries += len(f.args.Entries)
	w.bytes += f.size
}

// oldest returns the request whose answer comes next, or nil.
func (w *window) oldest() *flight {
	if len(w.flights) == 0 {
		return nil
	}
	return w.flights[0]
}

// pop removes the oldest.
func (w *window) pop() {
	f := w.flights[0]
	w.flights[0] = nil
	w.flights = w.flights[1:]
	w.entries -= len(f.args.Entries)
	w.bytes -= f.size
}

// drain removes all.
func (w *window) drain() []*flight {
	all := w.flights
	*w = window{}
	return all
}

// partsOf returns a request as those that are sent for it: raft takes what it has handed to a pipe for sent,
// and looks for more only when there is another entry.
func partsOf(args *raft.AppendEntriesRequest) (parts []*raft.AppendEntriesRequest) {
	for rest := args; ; {
		first := boundEntries(rest.Entries)
		if len(first) == len(rest.Entries) {
			return append(parts, rest)
		}
		part, next := *rest, *rest
		part.Entries, next.Entries = first, rest.Entries[len(first):]
		last := first[len(first)-1]
		next.PrevLogEntry, next.PrevLogTerm = last.Index, last.Term
		parts, rest = append(parts, &part), &next
	}
}
