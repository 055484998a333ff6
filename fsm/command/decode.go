package command

import (
	"errors"
	"fmt"
	"math"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Errors of decoding. They refuse a command that a member sends, and what they say of an entry is refused by every
// replica alike.
var (
	// ErrFormat means that the bytes are not the encoding of a batch or command, or hold a value out
	// of bounds (then ErrOutOfBounds is wrapped too). The text names the byte and the reason.
	ErrFormat = errors.New("malformed command")
	// ErrUnknownKind means a command of a kind that this version does not know.
	ErrUnknownKind = errors.New("unknown command kind")
	// ErrVersion means a batch in a format that this version does not know.
	ErrVersion = errors.New("unknown batch format")
)

// DecodeBatch reads what Batch.Append or AppendBatch wrote, and nothing else: encoding the result gives the same bytes,
// but for what it could not read. A command that cannot be read, of a kind that is not known or malformed, is an
// Unreadable in the result: each stands behind its length, so those behind it are read all the same. Errors: ErrFormat,
// ErrVersion.
//
// Payloads alias data, which must stay unmodified while they are used.
func DecodeBatch(data []byte) (*Batch, error) {
	r, b, n := openBatch(data)
	if r.err == nil {
		r.commands(&b, n)
	}
	if r.err == nil && r.pos != r.end {
		r.fail(nil, "%d bytes after the last bundle", r.end-r.pos)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode batch: %w", r.err)
	}
	return &b, nil
}

// openBatch reads what stands before a batch's commands, and their number.
func openBatch(data []byte) (r reader, b Batch, commands int) {
	r = reader{data: data, end: len(data)}
	switch {
	case len(data) > MaxBatch:
		r.err = fmt.Errorf("%w: a batch of %d bytes; at most %d", ErrFormat, len(data), MaxBatch)
		return r, b, 0
	case len(data) > 0 && data[0] != Format:
		remedy := "upgrade this broker"
		if data[0] < Format {
			remedy = "run the version that wrote it, or found a new federation on empty data"
		}
		r.err = fmt.Errorf("%w %d, this version reads %d: %s", ErrVersion, data[0], Format, remedy)
		return r, b, 0
	}
	r.uint("format", Format)
	b.Term, b.Elapsed = r.uint("term", math.MaxUint64), r.int("elapsed")
	return r, b, r.count("commands", MaxCommands, minCommand)
}

// commands reads a batch's commands, and who signed them.
func (r *reader) commands(b *Batch, n int) {
	start := r.pos
	if n > 0 {
		b.Commands = make([]Command, n)
	}
	ends := make([]int, n)
	for i := range b.Commands {
		if r.ordered(&b.Commands[i]); r.err != nil {
			return
		}
		ends[i] = r.pos
	}
	b.Bundles = r.bundles(start, ends)
}

// DecodeTerm returns the term of a batch. Errors: ErrFormat, ErrVersion.
func DecodeTerm(data []byte) (uint64, error) {
	r, b, _ := openBatch(data)
	return b.Term, r.err
}

// Decode reads one command as Append wrote it and returns the bytes after it. Errors: ErrFormat,
// ErrUnknownKind.
//
// Payloads alias data, which must stay unmodified while they are used.
func Decode(data []byte) (Command, []byte, error) {
	r := reader{data: data, end: len(data)}
	var c Command
	r.command(&c)
	if r.err != nil {
		return Command{}, nil, fmt.Errorf("decode command: %w", r.err)
	}
	return c, data[r.pos:], nil
}

// The fewest bytes that an element of a list takes: a count that cannot fit into the rest of the input
// is refused before anything is allocated for it.
const (
	minCommand = 6 // length, kind, site's length, incarnation, seq, ack
	minJob     = 4
	minMachine = 10
	minAttempt = 5
	minRow     = 8
	minNice    = 2
	minDeliver = minAttempt + 2
	minGates   = 2
	minGateRun = 5
)

// ordered reads a command of an entry, and passes over one that it cannot read. So nobody who has a command ordered
// stops those who apply it, and what is of a newer version is refused by older and newer members alike.
func (r *reader) ordered(c *Command) {
	n := r.count("command's length", MaxCommand, 1)
	if r.err != nil {
		return
	}
	after, outer := r.pos+n, r.end
	if r.contents(c, n); r.err != nil {
		*c = Command{Body: Unreadable{}}
		r.pos, r.end, r.err = after, outer, nil
	}
}

func (r *reader) command(c *Command) {
	if n := r.count("command's length", MaxCommand, 1); r.err == nil {
		r.contents(c, n)
	}
}

// contents reads what stands behind a command's length.
func (r *reader) contents(c *Command, n int) {
	start, outer := r.pos, r.end
	r.end = r.pos + n
	kind := r.uint("kind", math.MaxUint64)
	c.ID = ID{Site: r.site(), Incarnation: r.number(), Seq: r.number()}
	c.Ack = r.number()
	r.body(c, kind, start)
	switch {
	case r.err != nil:
		return
	case r.pos != r.end:
		r.fail(nil, "%d bytes after the command's body", r.end-r.pos)
		return
	case uint64(c.Body.Kind()) != kind:
		r.fail(nil, "kind %d holds what is of kind %d", kind, c.Body.Kind())
		return
	}
	if err := c.Validate(); err != nil {
		r.pos = start
		r.fail(err, "")
		return
	}
	r.end = outer
}

func (r *reader) body(c *Command, kind uint64, start int) {
	if r.err != nil {
		return
	}
	switch kind {
	case uint64(KindGenesis):
		b := new(Genesis)
		r.uuid(&b.Federation)
		b.CreatedMs, b.Seed = r.int("created_ms"), r.number()
		r.params(&b.Params)
		if r.err == nil && r.pos < r.end {
			r.fixed("founder's key", b.Founder[:])
			if b.Founder == (signature.Key{}) {
				r.fail(nil, "a founder's key of zero is not written")
			}
		}
		c.Body = b
	case uint64(KindRegister):
		c.Body = r.register()
	case uint64(KindSubmit):
		b := &Submit{Settled: r.number()}
		b.Jobs = r.jobs()
		c.Body = b
	case uint64(KindOffer):
		c.Body = r.offer()
	case uint64(KindStarted):
		c.Body = &Started{Attempts: list(r, "attempts", MaxReports, minAttempt+1, (*reader).started)}
	case uint64(KindComplete):
		c.Body = &Complete{Attempts: list(r, "attempts", MaxReports, minAttempt+7, (*reader).ended)}
	case uint64(KindDecline):
		c.Body = r.decline()
	case uint64(KindCancel):
		c.Body = &Cancel{Job: r.jobID(), Task: r.signed("task", math.MinInt64, math.MaxInt64), At: r.site()}
	case uint64(KindClose):
		c.Body = &Close{Why: Closure(r.uint("why", uint64(LastClosure)))}
	case uint64(KindUsage):
		b := &Usage{Batch: r.number()}
		b.Rows = list(r, "rows", MaxUsageRows, minRow, (*reader).row)
		c.Body = b
	case uint64(KindSiteLost):
		c.Body = &SiteLost{Site: r.site(), Incarnation: r.number(), Term: r.number()}
	case uint64(KindForget):
		c.Body = &Forget{Site: r.site()}
	case uint64(KindPolicy):
		b := new(SetParams)
		r.params(&b.Params)
		c.Body = b
	case uint64(KindSuspect):
		c.Body = &Suspect{Site: r.site(), Incarnation: r.number(), On: r.bool("on")}
	case uint64(KindAddresses):
		b := new(Addresses)
		b.HTTP, b.Peer, b.Gossip = r.string("http", MaxAddress), r.string("peer", MaxAddress), r.string("gossip", MaxAddress)
		c.Body = b
	case uint64(KindLeave):
		c.Body = &Leave{}
	case uint64(KindLead):
		c.Body = &Lead{Term: r.number()}
	case uint64(KindBound):
		c.Body = &Bound{Attempts: list(r, "attempts", MaxReports, minAttempt+1, (*reader).bound)}
	case uint64(KindDeliver):
		c.Body = &Deliver{Attempts: list(r, "attempts", MaxReports, minDeliver, (*reader).delivered)}
	case uint64(KindAhead):
		c.Body = &Ahead{IdleMs: r.int("idle_ms")}
	case uint64(KindHandBack):
		b := &HandBack{Attempts: list(r, "attempts", MaxReports, minAttempt, (*reader).attempt)}
		b.Reason = r.string("reason", MaxDetail)
		c.Body = b
	case uint64(KindRelease):
		left := MaxReports // of all jobs
		c.Body = &Release{Jobs: list(r, "jobs", MaxJobsPerSubmit, minGates, func(r *reader, g *JobGates) {
			r.gates(g, left)
			left -= len(g.Runs)
		})}
	case uint64(KindPrioritize):
		c.Body = &Prioritize{Jobs: list(r, "jobs", MaxReports, minNice, (*reader).priority)}
	case uint64(KindRaise):
		c.Body = &Raise{Version: r.uint32("version")}
	case uint64(KindRecover):
		c.Body = &Recover{Epoch: r.uint("epoch", MaxEpoch), HoldMs: r.int("hold_ms")}
	case uint64(KindRenice):
		c.Body = &Renice{Jobs: list(r, "jobs", MaxReports, minNice, (*reader).nice)}
	case uint64(KindOrphans):
		c.Body = &Orphans{Attempts: list(r, "attempts", MaxReports, minAttempt+7, (*reader).ended)}
	case uint64(KindInvite), uint64(KindRevoke), uint64(KindAdmit), uint64(KindRekey), uint64(KindMotion),
		uint64(KindVote), uint64(KindGossipKey):
		c.Body = r.rosterBody(kind)
	default:
		r.err = fmt.Errorf("%w %d at byte %d, site %s: upgrade this broker", ErrUnknownKind, kind, start, c.ID.Site)
	}
}
