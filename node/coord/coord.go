// Package coord orders commands: step 3 of a job's way.
//
// A backend (raftlog, zk, mem) delivers the same entries in the same
// order to one [Machine] at every member (architecture.md D1). coordtest is the
// suite that every backend passes. This package and its backends import fsm and
// never the broker.
package coord

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Errors of a proposal. Everything else that Propose returns, a cancelled
// context included, is an unknown outcome: the command may or may not be
// executed, now or later, and is to be proposed again under the same id.
var (
	// ErrRefused: certainly not executed and never will be by this call.
	ErrRefused = errors.New("proposal refused")
	// ErrTooLarge: the commands of one call exceed what an entry may hold. It
	// comes together with ErrRefused.
	ErrTooLarge = errors.New("proposal too large")
	// ErrUnknown: it may have been executed.
	ErrUnknown = errors.New("proposal outcome unknown")
	// ErrClosed: the log was closed before the proposal was sent.
	ErrClosed = errors.New("log closed")
	// ErrNoLead: no leader is known or reachable now; certainly not sent.
	ErrNoLead = errors.New("no leader")
	// ErrForeign: the peer belongs to another federation.
	ErrForeign = errors.New("another federation's node")
	// ErrJoinRefused: the federation does not admit the node under that name.
	ErrJoinRefused = errors.New("join refused")
)

// Machine is the replicated state machine as a backend drives it: one call at
// a time, in entry order.
type Machine interface {
	// Apply executes one encoded command.Batch and returns its commands' results: none if
	// all members refuse the entry alike. An error means that this member cannot go on,
	// since the others go by rules that it does not know: the backend stops the node and
	// never skips the entry.
	Apply(entry []byte) ([]command.Result, error)
	// Snapshot returns a point-in-time copy quickly; Write runs beside Apply.
	Snapshot() (Snapshot, error)
	// Restore replaces the state. On error the old state stays.
	Restore(r io.Reader) error
	// Result returns the recorded result of a command, for proposals that a
	// restored snapshot has executed.
	Result(id command.ID) (command.Result, bool)
	// Index is the number of the last entry applied; Term the last term seen.
	Index() uint64
	// Admit says whether a node may join under a site's name; an error carries
	// the reason for the operator.
	Admit(site string, node [16]byte) error
}

// Versioned is a [Machine] that goes by an apply version.
type Versioned interface {
	// Version is the one in force. Commands of kinds that only a newer one has are not
	// ordered: they would stop the members that do not know it.
	Version() uint32
}

// Unfinished is a [Machine] that may leave work to the next entries.
type Unfinished interface {
	// Pending reports whether it has. Then the leader orders an entry at once, an empty
	// one if nothing was proposed.
	Pending() bool
}

// HasWork reports whether a machine has left work to the next entries.
func HasWork(m Machine) bool {
	u, ok := m.(Unfinished)
	return ok && u.Pending()
}

// Dated is a [Machine] that wants to know when entries were ordered.
type Dated interface {
	// Dated tells before Apply when the leader appended the entry, by its wall
	// clock: the same at every member, and when the entry is replayed. It is for
	// people; Apply must not depend on it.
	Dated(at time.Time)
}

// Parting is a [Machine] that knows which sites have left on purpose.
type Parting interface {
	// HasLeft reports whether a site has said goodbye and not come back since.
	HasLeft(site string) bool
}

// Electoral is a [Machine] that knows what the members have decided about each other. Its methods may be called at any
// time, also beside Apply.
type Electoral interface {
	// MayVote reports whether a site may be a voter, and lead.
	MayVote(site string) bool
	// Expelled reports whether a site must not be in the group at all.
	Expelled(site string) bool
}

// MayVote reports whether a machine's members let a site vote; where nobody decides that, all do.
func MayVote(m Machine, site string) bool {
	e, decides := m.(Electoral)
	return !decides || e.MayVote(site)
}

// Expelled reports whether a machine's members have expelled a site.
func Expelled(m Machine, site string) bool {
	e, decides := m.(Electoral)
	return decides && e.Expelled(site)
}

// Snapshot is a frozen state.
type Snapshot interface {
	Write(w io.Writer) error
	Release()
}

// Log is the total order.
type Log interface {
	// Propose has the commands ordered, and returns their results once *this*
	// member has applied them. Commands of one call stand in one entry, in
	// order. Concurrent calls are batched. It works at every member: one that
	// is not the leader forwards.
	Propose(ctx context.Context, cmds ...command.Command) ([]command.Result, error)
	// Sync returns once this member has applied all that was committed
	// anywhere before the call (a current read), with the entry number.
	Sync(ctx context.Context) (uint64, error)
	// Renew asks the leader to extend this site's lease (architecture D4). It
	// returns nil only if the leader took the renewal after the call began, then
	// confirmed that it leads, its Grantor said yes at the moment of sending,
	// and this member has applied all that was committed before. So a lease may
	// be counted from the moment before the call. It asks whoever leads until
	// ctx ends: a late lease is worth nothing.
	// ErrRefused: the Grantor said no, or the renewal is another site's.
	Renew(ctx context.Context, r Renewal) error
	// Grant sets who decides on renewals while this member leads; before it is
	// set every renewal is refused. Call it once, before the first Renew.
	Grant(g Grantor)
	// Status tells what this member knows now; it never blocks.
	Status() Status
	// Changed is signalled (capacity 1, coalesced) after Status changed.
	Changed() <-chan struct{}
	// Remove takes a site's node out of the group; used when it left for good. At
	// another member than the leader it does so for that member's own site only.
	Remove(ctx context.Context, site string) error
	// Demote gives up this site's vote, if it has one, before a graceful
	// leave: the node stays a member and follows, and is not made a voter again
	// until it restarts or Stand is called. ErrRefused: it is another site's, or
	// the other voters cannot form a quorum without it; then nothing changed.
	// After any other error it may be demoted and does not stand.
	Demote(ctx context.Context, site string) error
	// Stand undoes Demote: this node may be made a voter again.
	Stand()
	// SetUnfit says why this member should not lead, in words for the operator; ""
	// = it is fit, as it is at first. An unfit leader hands the leadership over as
	// soon as another voter is fit, connected and up to date; where none is it leads
	// on. An unfit voter leaves it to the others to stand for leader, and stands
	// later if nobody does. It returns at once, and may be called often.
	SetUnfit(why string)
	// Failed is closed when the log stopped by itself; Err then says why.
	Failed() <-chan struct{}
	Err() error
	// Close stops it: idempotent, waits for its goroutines; proposals under
	// way end as ErrUnknown or ErrClosed.
	Close() error
}

// Measured is a [Log] that tells figures of its own.
type Measured interface {
	Figures() Figures
}

// Figures of a member, for metrics.
type Figures struct {
	// Syncs are recent medians, by site: how long this member takes to sync entries,
	// and, while it leads, how long each other voter takes to do so and answer.
	Syncs map[string]time.Duration
	// HandOvers counts the times that this member, as the leader, handed over by
	// itself, by reason: "unfit", "slow_disk", "far", "turn".
	HandOvers map[string]uint64
	// Held is how long sites' calls have waited for their quotas while this member led,
	// by site.
	Held map[string]time.Duration
}

// Renewal is one site's wish to keep its lease.
type Renewal struct {
	Site        string
	Incarnation uint64
}

// Grantor decides on renewals at the leader. Its methods must not block.
type Grantor interface {
	// Received is called when a renewal has arrived and this member leads term.
	// False refuses it.
	Received(r Renewal, term uint64) bool
	// Confirmed is called after leadership in term was confirmed later than
	// Received, at the moment of sending the acknowledgement. False drops it:
	// the loss of the site was proposed meanwhile, or the state does not know the
	// incarnation yet.
	Confirmed(r Renewal, term uint64) bool
}

// Disconnected is a [Grantor] that is told when a connection has ended over which a site asks this member, while it
// leads. The site may have ended, or dial again: it is a hint. It must not block.
type Disconnected interface {
	Disconnected(site string)
}

// Status of a member.
type Status struct {
	Lead     string // site id, "" when unknown
	IsLead   bool
	Term     uint64
	Voters   []string // site ids, sorted
	Members  []string // voters and non-voters, sorted
	CaughtUp bool     // has applied what was committed when it last heard the leader
}
