package command

// Kind numbers a command on the wire. Numbers are never reused.
type Kind uint8

// The commands. A kind that comes after a release needs an apply version that allows it.
const (
	KindGenesis   Kind = 1  // the first entry of a federation
	KindRegister  Kind = 2  // a broker presents itself (a new incarnation)
	KindSubmit    Kind = 3  // publish jobs
	KindOffer     Kind = 4  // the capacity a site exposes now
	KindStarted   Kind = 5  // attempts began to run
	KindComplete  Kind = 6  // attempts ended
	KindDecline   Kind = 7  // a site cannot run what it was assigned
	KindCancel    Kind = 8  // the owner wants a job, or one task, ended
	KindUsage     Kind = 9  // what a site ran for itself outside the log
	KindSiteLost  Kind = 10 // the leader found a site's lease expired
	KindForget    Kind = 11 // a lost or left site will not come back: its waiting jobs end
	KindPolicy    Kind = 12 // change the federation's parameters
	KindSuspect   Kind = 13 // rest or wake a site's offers (a hint, no loss)
	KindAddresses Kind = 14 // a site's addresses changed
	KindLeave     Kind = 15 // a site goes by its own will, and may come back
	KindBound     Kind = 16 // when attempts without a watchdog are certainly dead
	KindRaise     Kind = 17 // go on by a newer apply version
	KindRecover   Kind = 18 // go on without the voters that are lost for good
	KindClose     Kind = 19 // why a site lends nothing, or that it lends again
)

// LastKind is the greatest one.
const LastKind = KindClose

// ID names a command for ever: its site, that site's incarnation and a
// sequence number that starts at 1 in each incarnation. A repeat of an id
// within the window gives the old result; one below the floor is Stale.
type ID struct {
	Site        string
	Incarnation uint64
	Seq         uint64
}

// Command is one proposal of one site.
type Command struct {
	ID ID
	// Ack raises the site's floor: results of all its sequence numbers ≤ Ack
	// have reached it. Seq > Ack, and Seq ≤ Ack+Window.
	Ack  uint64
	Body Body
}

// Window is how many results the state keeps per site: a site has at most
// this many commands under way.
const Window = 1024

// Batch is one entry of the total order, stamped by the leader (architecture D3).
type Batch struct {
	// Term of the leader that stamped it; grows with every change of leader.
	Term uint64
	// Elapsed is milliseconds on the leader's monotonic clock since its first
	// entry of Term. State time = time at the term's start + Elapsed, never
	// backwards, at most MaxStep ahead in one entry.
	Elapsed  int64
	Commands []Command // empty: an idle tick
}

// MaxStep caps how far one entry may move log time, in milliseconds.
const MaxStep = 60_000

// Body is a command's content; its concrete type gives the kind.
type Body interface{ Kind() Kind }

// Genesis creates the federation. Only valid as the very first command.
type Genesis struct {
	Federation [16]byte // uuid
	CreatedMs  int64    // unix milliseconds, for people
	Seed       uint64   // of the replayable random choice of machines
	Params     Params
}

// Register presents a broker. The state answers with the new incarnation and
// the smallest job number it may use (Result.Incarnation, Result.NextJob).
// Its ID has Incarnation 0 and Seq 0: it is made idempotent by Boot.
type Register struct {
	Node [16]byte // identity of the data directory; a known name with another Node is refused
	Boot [16]byte // one start of the process; the same Boot again gives the same incarnation
	// Known are the Boots that the data directory remembers, this one included.
	// If the site's latest is not among them, the directory is older than what
	// the federation has seen (a backup was put back), and is refused: it may
	// have forgotten what it promised. Empty: not checked.
	Known [][16]byte
	// Addresses host:port; Gossip may be empty.
	HTTP, Peer, Gossip string
	MaxVersion         uint32 // the newest apply version the broker knows
	// Held are the attempts the site still answers for (running, or ended with
	// the completion on its way). Lost are those it started and lost track of.
	// What it was assigned before and names in neither was never started and
	// goes back to the queue. A Lost one with a Bound goes back when that passes.
	Held, Lost []AttemptRef
}

// Submit publishes jobs of the command's own site.
type Submit struct {
	// Settled: the site will never publish a job with a number < Settled that
	// is not in the state yet; such a submission is refused as JobRetired.
	Settled uint64
	Jobs    []JobSpec
}

// JobSpec is a job as the order sees it: what matching needs, and a payload it
// never looks into (the command line, image, environment, name and labels).
type JobSpec struct {
	Num         uint64 // the job is Site.Num with the command's site
	Count       uint32 // tasks, 1 … MaxCount
	Need        Resources
	Image       bool  // the payload names a container image to run it in
	TimeoutMs   int64 // 0 = none
	MaxAttempts uint32
	OnLoss      OnLoss
	Priority    int32
	Only, Not   []string // sites; sorted, unique
	// Selectors are what a machine's labels must satisfy, all of them, each in the
	// form of Selector.String; sorted, unique.
	Selectors []string `json:",omitempty"`
	CreatedMs int64    // unix milliseconds, for people
	Payload   []byte
}

// OnLoss says what happens to a task whose site is lost.
type OnLoss uint8

// The three answers to a loss; Fenced is the default.
const (
	Fenced    OnLoss = iota // requeued once its attempt must have stopped
	Immediate               // requeued at the first hint, and at a loss whatever its attempt's stop bound; attempts may overlap
	Never                   // ends as lost
)

// Machine is what a site exposes of one of its machines: a total, from which
// the state subtracts what it has assigned there.
type Machine struct {
	Name string
	Resources
	// Whole is what it would expose if nothing ran outside the log: a task that
	// fits Whole can run here some day, and is worth waiting or reserving for.
	// Less than Resources in any part counts as Resources there.
	Whole Resources
	Runs  Runs // which tasks, whatever their size
	// Slots are how many tasks the federation may run here at once, 0 = as many as
	// fit.
	Slots  int64
	Labels Labels
}

// Offer replaces the site's standing offer when Version is greater.
type Offer struct {
	Version  uint64
	Machines []Machine // sorted by name
	Capacity Resources // the whole site, for people
	Home     Resources // in use by tasks started outside the log
}

// AttemptRef names one attempt.
type AttemptRef struct {
	Job     JobID
	Task    uint32 // index from 0
	Attempt uint32 // from 1
	Token   uint64 // number of the entry that assigned it
}

// Started reports attempts that run; DelayMs from assignment to exec.
type Started struct{ Attempts []StartedAttempt }

// StartedAttempt is one line of Started.
type StartedAttempt struct {
	AttemptRef
	DelayMs int64
}

// Complete reports attempts that ended.
type Complete struct{ Attempts []Ended }

// Bound declares when attempts that nothing can stop from outside (a batch
// system's job, a cluster's pod) are certainly dead, whatever becomes of their
// site. Their site starts them only once this is in the state: a loss does not
// return them to the queue before.
type Bound struct{ Attempts []BoundAttempt }

// BoundAttempt is one line of Bound: dead at the latest BoundMs after this
// entry, as the state's clock goes. The state waits MarginMs longer.
type BoundAttempt struct {
	AttemptRef
	BoundMs int64
}

// Ended is the compact outcome of an attempt.
type Ended struct {
	AttemptRef
	Outcome  Outcome
	ExitCode int32
	Signal   int32
	Ran      bool   // it was started: a run may take 0 ms; RunMs > 0 implies it
	DelayMs  int64  // assignment → exec
	RunMs    int64  // exec → end; 0 if it never ran
	Detail   string // ≤ MaxDetail bytes, e.g. "timeout after 90s"
}

// Outcome of an attempt as its site saw it.
type Outcome uint8

// The outcomes.
const (
	Succeeded Outcome = iota
	Failed            // counts towards MaxAttempts; so does TimedOut
	TimedOut
	Stopped // because the state said so
	// Lost: ended by the lease or lost track of; advances the attempt, is no
	// failure. One with a Bound is not taken for dead before that has passed: a
	// site that knows it dead says Stopped.
	Lost
)

// Decline hands assignments back. Offer, if present, is installed before matching.
type Decline struct {
	Attempts []AttemptRef
	Reason   string
	Offer    *Offer
}

// Cancel ends a job of the command's own site, or one task of it.
type Cancel struct {
	Job  JobID
	Task int64 // −1 = all
	// At is the site whose broker was asked for it; empty: the owner's.
	At string
}

// Close says why the command's own site lends nothing, or, with NotClosed, that it
// lends again. It changes nothing but what is told of the site.
type Close struct{ Why Closure }

// Closure is why a site lends nothing.
type Closure uint8

// The closures.
const (
	NotClosed     Closure         = iota
	ClosedDrain                   // its operator drains it
	ClosedLeaving                 // it leaves the federation
	ClosedDisk                    // its broker's disk is full
	ClosedTrouble                 // none of its machines can start tasks
	LastClosure   = ClosedTrouble // the greatest one
)

var closureNames = [...]string{"", "draining", "leaving", "disk-full", "trouble"}

// String is the closure's name in the API; empty for NotClosed.
func (c Closure) String() string {
	if int(c) < len(closureNames) {
		return closureNames[c]
	}
	return "unknown"
}

// Usage reports runs outside the log, in order: applied only if Batch is one
// more than the site's last. Rows are bounded by MaxUsageRows.
type Usage struct {
	Batch uint64
	Rows  []UsageRow
}

// UsageRow is one ended home run. s = entry time − AgoMs − RunMs, e = s + RunMs but not
// after the entry, r = s − WaitMs; s and r are not below 0.
type UsageRow struct {
	Job                  uint64
	Task                 uint32
	Need                 Resources
	AgoMs, RunMs, WaitMs int64
}

// SiteLost parks a site (architecture D6). Only the leader of Term proposes it.
type SiteLost struct {
	Site        string
	Incarnation uint64
	Term        uint64
}

// Forget ends a lost or left site's waiting jobs as lost. The account stays.
type Forget struct{ Site string }

// SetParams changes the federation's parameters.
type SetParams struct{ Params Params }

// Suspect rests (On) or wakes a site's offers. It is a hint: what runs there goes on.
// On also returns the site's Immediate tasks for others to the queue, where they wait
// until another site takes them or the suspicion is taken back.
type Suspect struct {
	Site        string
	Incarnation uint64
	On          bool
}

// Leave parks the command's own site: its attempts have ended, its waiting jobs
// stay withdrawn until it registers again or its departure period is over.
type Leave struct{}

// Raise puts an apply version in force from the next entry on. It is refused as
// VersionTooNew while the broker of a site that has not left does not know it;
// one that is in force already, or an older one, changes nothing.
type Raise struct{ Version uint32 }

// Recover begins a new epoch: the command's site goes on without the voters that
// are lost for good, and with them perhaps the newest entries (recover.go). It is
// never ordered: `cloudshare recover` applies it to the newest surviving copy
// while its broker is stopped. Its ID has Incarnation 0 and Seq 0; an epoch
// that has begun already changes nothing.
type Recover struct {
	Epoch uint64 // 1 … MaxEpoch, greater than the one it ends
	// HoldMs is how long nothing is assigned, in log time; at least the lease and
	// the margin are waited. More is for attempts with a stop bound that only the
	// lost voters may know of.
	HoldMs int64
}

// Addresses updates where a site's broker listens.
type Addresses struct{ HTTP, Peer, Gossip string }

// Kind implements Body.
func (*Genesis) Kind() Kind   { return KindGenesis }
func (*Register) Kind() Kind  { return KindRegister }
func (*Submit) Kind() Kind    { return KindSubmit }
func (*Offer) Kind() Kind     { return KindOffer }
func (*Started) Kind() Kind   { return KindStarted }
func (*Complete) Kind() Kind  { return KindComplete }
func (*Decline) Kind() Kind   { return KindDecline }
func (*Cancel) Kind() Kind    { return KindCancel }
func (*Usage) Kind() Kind     { return KindUsage }
func (*SiteLost) Kind() Kind  { return KindSiteLost }
func (*Forget) Kind() Kind    { return KindForget }
func (*SetParams) Kind() Kind { return KindPolicy }
func (*Suspect) Kind() Kind   { return KindSuspect }
func (*Addresses) Kind() Kind { return KindAddresses }
func (*Leave) Kind() Kind     { return KindLeave }
func (*Close) Kind() Kind     { return KindClose }
func (*Bound) Kind() Kind     { return KindBound }
func (*Raise) Kind() Kind     { return KindRaise }
func (*Recover) Kind() Kind   { return KindRecover }
