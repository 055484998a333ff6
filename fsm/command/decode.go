package command

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cloudshare/cloudshare/sched"
)

// Errors of decoding. Each stops the node when a replicated entry brings it,
// and refuses a command when a member sends it.
var (
	// ErrFormat: the bytes are no encoding of a batch or command, or hold a
	// value out of its bounds (then ErrOutOfBounds is wrapped too). The text
	// names the byte and the reason.
	ErrFormat = errors.New("malformed command")
	// ErrUnknownKind: a command of a kind that this version does not know.
	ErrUnknownKind = errors.New("unknown command kind")
	// ErrVersion: a batch in a format that this version does not know.
	ErrVersion = errors.New("unknown batch format")
)

// DecodeBatch reads what Batch.Append or AppendBatch wrote, and nothing else:
// encoding its answer gives the same bytes. Errors: ErrFormat, ErrUnknownKind,
// ErrVersion.
//
// Payloads alias data, which must stay unmodified as long as they are used.
func DecodeBatch(data []byte) (*Batch, error) {
	if len(data) > MaxBatch {
		return nil, fmt.Errorf("%w: a batch of %d bytes; at most %d", ErrFormat, len(data), MaxBatch)
	}
	if len(data) > 0 && data[0] != Format {
		remedy := "upgrade this broker"
		if data[0] < Format {
			remedy = "run the version that wrote it, or found a federation anew on empty data"
		}
		return nil, fmt.Errorf("%w %d, this version reads %d: %s", ErrVersion, data[0], Format, remedy)
	}
	r := reader{data: data, end: len(data)}
	r.uint("format", Format)
	b := &Batch{Term: r.uint("term", math.MaxUint64), Elapsed: r.int("elapsed")}
	b.Commands = list(&r, "commands", MaxCommands, minCommand, (*reader).command)
	if r.pos != r.end {
		r.fail(nil, "%d bytes after the last command", r.end-r.pos)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode batch: %w", r.err)
	}
	return b, nil
}

// Decode reads one command as Append wrote it and returns the
// bytes that follow. Errors: ErrFormat, ErrUnknownKind.
//
// Payloads alias data, which must stay unmodified as long as they are used.
func Decode(data []byte) (Command, []byte, error) {
	r := reader{data: data, end: len(data)}
	var c Command
	r.command(&c)
	if r.err != nil {
		return Command{}, nil, fmt.Errorf("decode command: %w", r.err)
	}
	return c, data[r.pos:], nil
}

// The fewest bytes that an element of a list takes: a count that the rest of
// the input cannot hold is refused before anything is allocated for it.
const (
	minCommand = 6 // length, kind, site's length, incarnation, seq, ack
	minJob     = 15
	minMachine = 10
	minAttempt = 5
	minRow     = 8
)

// reader reads data[pos:end]. After the first error it reads zeros.
type reader struct {
	data     []byte
	pos, end int
	err      error
	// sites are the last site names seen: most commands name few, many times.
	sites [4]string
	next  uint8
}

// fail records the first error, with cause if there is one, and leaves
// nothing to read.
func (r *reader) fail(cause error, format string, args ...any) {
	if r.err != nil {
		return
	}
	r.err = fmt.Errorf("%w at byte %d: %s", ErrFormat, r.pos, fmt.Sprintf(format, args...))
	if cause != nil {
		r.err = fmt.Errorf("%w at byte %d: %w", ErrFormat, r.pos, cause)
	}
	r.pos, r.end = 0, 0
}

func (r *reader) command(c *Command) {
	n := r.count("command's length", MaxCommand, 1)
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
		c.Body = b
	case uint64(KindRegister):
		c.Body = r.register()
	case uint64(KindSubmit):
		b := &Submit{Settled: r.number()}
		b.Jobs = list(r, "jobs", MaxJobsPerSubmit, minJob, (*reader).job)
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
		c.Body = &Addresses{HTTP: r.string("http", MaxAddress), Peer: r.string("peer", MaxAddress), Gossip: r.string("gossip", MaxAddress)}
	case uint64(KindLeave):
		c.Body = &Leave{}
	case uint64(KindBound):
		c.Body = &Bound{Attempts: list(r, "attempts", MaxReports, minAttempt+1, (*reader).bound)}
	case uint64(KindRaise):
		c.Body = &Raise{Version: r.uint32("version")}
	case uint64(KindRecover):
		c.Body = &Recover{Epoch: r.uint("epoch", MaxEpoch), HoldMs: r.int("hold_ms")}
	default:
		r.err = fmt.Errorf("%w %d at byte %d, site %s: upgrade this broker", ErrUnknownKind, kind, start, c.ID.Site)
	}
}

func (r *reader) params(p *Params) {
	p.Policy = r.string("policy", 64)
	p.Running = sched.Mode(r.uint("running", math.MaxUint8))
	p.PreferOwn, p.ClaimedHome, p.FixedOrder = r.bool("prefer_own"), r.bool("claimed_home"), r.bool("fixed_order")
	p.ReserveAfterMs = r.int("reserve_after_ms")
	p.RetainMs, p.RetainJobs = r.int("retain_ms"), r.int("retain_jobs")
	p.DepartureMs = r.int("departure_ms")
	p.RateCPU, p.RateMem, p.RateGPU = r.int("rate_cpu"), r.int("rate_mem"), r.int("rate_gpu")
	p.QuantumMs = r.int("quantum_ms")
	p.LeaseMs, p.MarginMs = r.int("lease_ms"), r.int("margin_ms")
}

func (r *reader) register() *Register {
	b := new(Register)
	r.uuid(&b.Node)
	r.uuid(&b.Boot)
	b.Known = list(r, "known", MaxKnown, len(b.Boot), (*reader).uuid)
	b.HTTP, b.Peer, b.Gossip = r.string("http", MaxAddress), r.string("peer", MaxAddress), r.string("gossip", MaxAddress)
	b.MaxVersion = r.uint32("max_version")
	b.Held = list(r, "held", MaxHeld, minAttempt, (*reader).attempt)
	b.Lost = list(r, "lost", MaxHeld, minAttempt, (*reader).attempt)
	return b
}

func (r *reader) job(j *JobSpec) {
	j.Num, j.Count = r.number(), r.uint32("count")
	j.Need, j.Image = r.resources(), r.bool("image")
	j.TimeoutMs = r.int("timeout_ms")
	j.MaxAttempts = r.uint32("max_attempts")
	j.OnLoss = OnLoss(r.uint("on_loss", math.MaxUint8))
	j.Priority = int32(r.signed("priority", math.MinInt32, math.MaxInt32))
	j.Only = list(r, "only", MaxSiteNames, 1, (*reader).siteInto)
	j.Not = list(r, "not", MaxSiteNames, 1, (*reader).siteInto)
	j.CreatedMs = r.int("created_ms")
	j.Selectors = list(r, "selectors", MaxSelectors, 1, func(r *reader, s *string) { *s = r.string("selector", MaxSelectorText) })
	j.Payload = r.bytes("payload", MaxPayload)
}

func (r *reader) offer() *Offer {
	b := &Offer{Version: r.number(), Machines: r.machines()}
	b.Capacity, b.Home = r.resources(), r.resources()
	return b
}

// machines reads machines behind the labels that they share. Those stand in the
// order of their first use, so there is one way to write them.
func (r *reader) machines() []Machine {
	sets := list(r, "sets of labels", MaxLabelSets, 1, func(r *reader, l *Labels) { *l = Labels(r.string("labels", MaxLabelText)) })
	used := 0
	twice := map[Labels]bool{"": true}
	for _, l := range sets {
		if twice[l] {
			r.fail(nil, "labels %.140q are none, or stand twice", l)
		}
		twice[l] = true
	}
	machines := list(r, "machines", MaxMachines, minMachine, func(r *reader, m *Machine) {
		r.machine(m)
		m.Slots = r.int("slots")
		n := int(r.uint("labels", uint64(min(len(sets), used+1))))
		if used = max(used, n); n > 0 {
			m.Labels = sets[n-1]
		}
	})
	if r.err == nil && used != len(sets) {
		r.fail(nil, "%d sets of labels, %d are used", len(sets), used)
	}
	return machines
}

func (r *reader) machine(m *Machine) {
	m.Name, m.Resources, m.Whole = r.string("machine's name", MaxMachineName), r.resources(), r.resources()
	m.Runs = Runs(r.uint("runs", math.MaxUint8))
}

func (r *reader) started(a *StartedAttempt) {
	r.attempt(&a.AttemptRef)
	a.DelayMs = r.int("delay_ms")
}

func (r *reader) bound(a *BoundAttempt) {
	r.attempt(&a.AttemptRef)
	a.BoundMs = r.int("bound_ms")
}

func (r *reader) ended(a *Ended) {
	r.attempt(&a.AttemptRef)
	a.Outcome = Outcome(r.uint("outcome", math.MaxUint8))
	a.ExitCode = int32(r.signed("exit_code", math.MinInt32, math.MaxInt32))
	a.Signal = int32(r.signed("signal", math.MinInt32, math.MaxInt32))
	a.Ran, a.DelayMs, a.RunMs = r.bool("ran"), r.int("delay_ms"), r.int("run_ms")
	a.Detail = r.string("detail", MaxDetail)
}

func (r *reader) decline() *Decline {
	b := new(Decline)
	b.Attempts = list(r, "attempts", MaxReports, minAttempt, (*reader).attempt)
	b.Reason = r.string("reason", MaxDetail)
	if r.bool("offer") {
		b.Offer = r.offer()
	}
	return b
}

func (r *reader) row(u *UsageRow) {
	u.Job, u.Task, u.Need = r.number(), r.uint32("task"), r.resources()
	u.AgoMs, u.RunMs, u.WaitMs = r.int("ago_ms"), r.int("run_ms"), r.int("wait_ms")
}

func (r *reader) attempt(a *AttemptRef) {
	a.Job, a.Task = r.jobID(), r.uint32("task")
	a.Attempt, a.Token = r.uint32("attempt"), r.number()
}

func (r *reader) jobID() JobID { return JobID{Site: r.site(), Num: r.number()} }

func (r *reader) resources() Resources {
	return Resources{MilliCPU: r.int("milli_cpu"), MemMiB: r.int("mem_mib"), GPU: r.int("gpu")}
}

// list reads a length and as many elements, each of which takes at least
// least bytes. An empty list is nil.
func list[T any](r *reader, what string, most, least int, read func(*reader, *T)) []T {
	n := r.count(what, most, least)
	if n == 0 {
		return nil
	}
	items := make([]T, n)
	for i := range items {
		if read(r, &items[i]); r.err != nil {
			return nil
		}
	}
	return items
}

// count reads a length of at most most that the rest of the input can hold.
func (r *reader) count(what string, most, least int) int {
	n := r.uint(what, uint64(most))
	if left := r.end - r.pos; n > uint64(left/least) {
		r.fail(nil, "%s: %d do not fit into the %d bytes left", what, n, left)
		return 0
	}
	return int(n)
}

// bytes aliases the input.
func (r *reader) bytes(what string, most int) []byte {
	n := r.count(what, most, 1)
	if n == 0 {
		return nil
	}
	r.pos += n
	return r.data[r.pos-n : r.pos : r.pos]
}

func (r *reader) string(what string, most int) string { return string(r.bytes(what, most)) }

// site reads a site's name; whether it can be one is for Validate to say.
func (r *reader) site() string {
	b := r.bytes("site", 63)
	for i := range r.sites {
		if string(b) == r.sites[i] { // compares without allocating
			return r.sites[i]
		}
	}
	s := string(b)
	r.sites[r.next%uint8(len(r.sites))] = s
	r.next++
	return s
}

func (r *reader) siteInto(s *string) { *s = r.site() }

func (r *reader) uuid(to *[16]byte) {
	if r.end-r.pos < len(to) {
		r.fail(nil, "a uuid takes 16 bytes, %d are left", r.end-r.pos)
		return
	}
	r.pos += copy(to[:], r.data[r.pos:])
}

func (r *reader) bool(what string) bool { return r.uint(what, 1) == 1 }

// int reads a number that cannot be negative.
func (r *reader) int(what string) int64 { return int64(r.uint(what, math.MaxInt64)) }

func (r *reader) uint32(what string) uint32 { return uint32(r.uint(what, math.MaxUint32)) }

func (r *reader) signed(what string, low, high int64) int64 {
	v := protowire.DecodeZigZag(r.number())
	if v < low || v > high {
		r.fail(nil, "%s %d is not in %d…%d", what, v, low, high)
		return 0
	}
	return v
}

func (r *reader) uint(what string, most uint64) uint64 {
	v := r.number()
	if v > most {
		r.fail(nil, "%s %d is more than %d", what, v, most)
		return 0
	}
	return v
}

// number reads any varint in its shortest form.
func (r *reader) number() uint64 {
	if r.pos < r.end && r.data[r.pos] < 0x80 { // most are small
		r.pos++
		return uint64(r.data[r.pos-1])
	}
	return r.longNumber()
}

func (r *reader) longNumber() uint64 {
	v, n := protowire.ConsumeVarint(r.data[r.pos:r.end])
	switch {
	case n < 0:
		r.fail(nil, "a number is cut off or longer than 64 bits")
		return 0
	case n != protowire.SizeVarint(v):
		r.fail(nil, "a number takes %d bytes where %d would do", n, protowire.SizeVarint(v))
		return 0
	}
	r.pos += n
	return v
}
