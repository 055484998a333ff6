// Package wire holds the JSON forms of the HTTP API, shared by the server
// (step 1 of a job's way) and its Go client. It imports the standard library
// only.
//
// Field tags besides json are read by the OpenAPI generator.
package wire

import (
	"strings"
	"time"
)

// Header names of the API.
const (
	HeaderIndex = "X-CloudShare-Index" // number of the last entry applied by who answers
	HeaderHome  = "X-CloudShare-Home"  // number of the last event of this site's home jobs; see blocking reads
	HeaderAge   = "X-CloudShare-Age"   // how old the state of who answers may be, in seconds with three decimals; or "unknown"
	HeaderStale = "X-CloudShare-Stale" // "true": who answers has no contact with the leader; else left out
	HeaderHops  = "X-CloudShare-Hops"  // how often brokers passed the request on
	HeaderVia   = "X-CloudShare-Via"   // the site whose broker was asked, on what brokers pass on
	HeaderSite  = "X-CloudShare-Site"  // whose broker answers
	HeaderMeans = "X-CloudShare-Means" // SITE/FEDERATION that a broker means when it passes a request on: any other refuses it
	HeaderAt    = "X-CloudShare-At"    // address at which a broker has dialed the one that it asks whether it is there
	// HeaderHere, set, asks a broker for what it has itself: it neither asks others nor passes the question on, so a
	// search cannot go round.
	HeaderHere     = "X-CloudShare-Here"
	HeaderKey      = "Idempotency-Key"      // names a submission
	HeaderReplayed = "Idempotency-Replayed" // "true": the answer of an earlier one
	TypeJSON       = "application/json"
	TypeNDJSON     = "application/x-ndjson"
	TypeProblem    = "application/problem+json"
)

// Spec is a job as users write it. Nil and empty fields take the defaults.
type Spec struct {
	Name      string            `json:"name" required:"false" maxLength:"255" doc:"for people"`
	Command   []string          `json:"command" required:"false" doc:"program and arguments; command or image is required"`
	Image     *string           `json:"image" required:"false" doc:"container image"`
	Env       map[string]string `json:"env" required:"false" doc:"added to each task's environment"`
	Count     uint32            `json:"count" required:"false" minimum:"1" maximum:"1000000" default:"1" doc:"number of tasks"`
	Indices   string            `json:"indices,omitempty" required:"false" example:"3,17,40-60" doc:"what the tasks are numbered by instead of 0 to count-1, such as those of another job that failed; count is then theirs"`
	Timeout   *string           `json:"timeout" required:"false" example:"90s" doc:"a task running longer is ended; null = none"`
	Resources SpecResources     `json:"resources" required:"false" doc:"of each task"`
	Retry     SpecRetry         `json:"retry" required:"false"`
	Priority  int32             `json:"priority" required:"false" default:"0" doc:"higher first, within the owner"`
	Labels    map[string]string `json:"labels" required:"false"`
	Sites     SpecSites         `json:"sites" required:"false" doc:"where tasks may run"`
	Selectors []string          `json:"selectors" required:"false" maxItems:"16" example:"[\"gpu=a100\",\"zone in (a,b)\"]" doc:"what a machine's labels must satisfy, all of them: KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B)"`
	Network   bool              `json:"network,omitempty" required:"false" default:"false" doc:"the tasks need a network; at other sites they run only where others' tasks have one, and without this they have none there"`
	Inputs    []SpecInput       `json:"inputs,omitempty" required:"false" maxItems:"256" doc:"files that each task finds when it begins"`
	Outputs   *SpecOutputs      `json:"outputs,omitempty" required:"false" doc:"files that each task is to leave"`
	Notify    []SpecNotify      `json:"notify,omitempty" required:"false" maxItems:"4" doc:"who is told of the job's end, by its owner's broker, which keeps this to itself; in an answer it is in the job's notices"`
	Parallel  uint32            `json:"parallel,omitempty" required:"false" minimum:"1" maximum:"1000000" doc:"how many tasks of the job run at a time at most; the others are held"`
	After     []SpecAfter       `json:"after,omitempty" required:"false" maxItems:"64" doc:"jobs that this one waits for, each named once: its tasks are held until all of these have ended as asked; if one ends otherwise, it is cancelled"`
}

// SpecResources is what one task needs.
type SpecResources struct {
	CPU    int64  `json:"cpu" required:"false" minimum:"1" default:"1" doc:"whole cores, exclusive"`
	Memory string `json:"memory" required:"false" default:"0" example:"256Mi" doc:"0 = no limit"`
	GPU    int64  `json:"gpu" required:"false" minimum:"0" default:"0"`
}

// SpecAfter is a job that another one waits for.
type SpecAfter struct {
	Job  string `json:"job" example:"site-1.42" doc:"a job of the same site that was accepted before; with NDJSON also #n, for the one of line n, which must be an earlier line"`
	When string `json:"when,omitempty" required:"false" enum:"ok,any,notok,each" default:"ok" doc:"how it must end: ok = all its tasks succeeded, any = in whatever way, notok = it failed, was cancelled or lost; each = each task waits for the task at its place of that job to succeed"`
}

// SpecRetry says how often a failed task is tried, and what a loss means.
type SpecRetry struct {
	MaxAttempts uint32   `json:"max_attempts" required:"false" minimum:"1" default:"1"`
	OnLoss      string   `json:"on_loss" required:"false" enum:"fenced,immediate,never" default:"fenced"`
	Backoff     string   `json:"backoff,omitempty" required:"false" example:"10s" doc:"how long a task is held after its first failure; doubles with each further one; none if left out"`
	BackoffMax  string   `json:"backoff_max,omitempty" required:"false" example:"10m" doc:"the longest that backoff becomes; 10m, or backoff if that is longer, if left out"`
	OnlyOn      []string `json:"only_on,omitempty" required:"false" maxItems:"64" example:"[\"75\"]" doc:"a task is tried again after these exit codes alone, such as 2 or 64-78; one that signal n ended has 128+n"`
	NotOn       []string `json:"not_on,omitempty" required:"false" maxItems:"64" example:"[\"2\",\"64-78\"]" doc:"a task is not tried again after these exit codes; not together with only_on"`
}

// SpecSites names sites.
type SpecSites struct {
	Only []string `json:"only" required:"false"`
	Not  []string `json:"not" required:"false"`
}

// Accepted answers a submission.
type Accepted struct {
	ID         string `json:"id" example:"site-1.42"`
	State      string `json:"state" doc:"the job's; retired: a repeat of what has ended and is no longer kept"`
	Reason     string `json:"reason,omitempty" doc:"why it waits"`
	Durability string `json:"durability" enum:"federation,site" doc:"committed by the quorum, or synced at this site only"`
	Replayed   bool   `json:"replayed,omitempty" doc:"in lines (NDJSON) only: the answer of an earlier one; one job's has the header Idempotency-Replayed"`
}

// Freshness is part of answers that show the federation's state: it is left out
// while the asked broker has contact with the leader.
type Freshness struct {
	Stale bool   `json:"stale,omitempty" doc:"the asked broker has no contact with the leader: this is as it was then; left out = it has"`
	AgeMs *int64 `json:"age_ms,omitempty" doc:"of a stale answer: how many milliseconds ago that was at most; left out = there was no contact since the broker started"`
	// NoLeaderSince is AgeMs as a date.
	NoLeaderSince *time.Time `json:"no_leader_since,omitempty" doc:"of a stale answer: when the asked broker had contact with the leader last, by its clock; left out = not since it started"`
}

// SetFreshness lets a server fill an answer that has these fields.
func (f *Freshness) SetFreshness(v Freshness) { *f = v }

// List is the form of every list; Next is "" on the last page.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next" doc:"cursor of the next page; empty on the last"`
	Freshness
}

// Job is a job as people see it.
type Job struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Site        string            `json:"site" doc:"its owner"`
	State       string            `json:"state" enum:"queued,running,succeeded,failed,cancelled,lost,withdrawn"`
	Progress    string            `json:"progress,omitempty" example:"6/60 done, waiting" doc:"for people, of a job that has not ended and of which tasks have: how many, and what the others do"`
	Reason      string            `json:"reason"`
	Durability  string            `json:"durability"`
	SubmittedAt *time.Time        `json:"submitted_at"`
	StartedAt   *time.Time        `json:"started_at"`
	EndedAt     *time.Time        `json:"ended_at"`
	Counts      map[string]uint32 `json:"counts" doc:"tasks per state"`
	User        string            `json:"user,omitempty" doc:"whose it is; told by its owner's broker alone"`
	CancelledBy string            `json:"cancelled_by,omitempty" doc:"who had it cancelled: a user, or the operator; told by its owner's broker until it is restarted"`
	Outline     bool              `json:"outline,omitempty" doc:"of the spec there are count and resources only: the rest is shown by its owner's broker, to its user and the operator"`
	Sealed      bool              `json:"sealed,omitempty" doc:"name, command and environment are sealed: the owner's broker can read them, and those of the sites that the job's tasks are assigned to; this one does not show them"`
	Spec        Spec              `json:"spec"`
	Notices     []Notice          `json:"notices,omitempty" doc:"in one job's answer, by its owner's broker: who is told of its end, and what became of that"`
	WaitsFor    []WaitsFor        `json:"waits_for,omitempty" doc:"in one job's answer, while it is held: the jobs that it waits for"`
	AwaitedBy   *AwaitedBy        `json:"awaited_by,omitempty" doc:"in one job's answer: the jobs that wait for it, if there are any"`
	Failed      []Task            `json:"failed,omitempty" doc:"in one job's answer: its first tasks, 10 at most, that failed or were lost; all are tasks?state=failed&state=lost"`
	Freshness
}

// WaitsFor is a job that a held one waits for.
type WaitsFor struct {
	Job   string `json:"job"`
	When  string `json:"when" enum:"ok,any,notok"`
	State string `json:"state,omitempty" doc:"in which it has ended; unknown: it is no longer kept, and its end was not seen; left out until it has ended"`
}

// AwaitedBy are jobs that wait for one.
type AwaitedBy struct {
	Count int      `json:"count"`
	Jobs  []string `json:"jobs" doc:"the first ones, 100 at most"`
}

// Task is one task of a job.
type Task struct {
	Index     uint32     `json:"index" doc:"from 0, or one of the spec's indices"`
	State     string     `json:"state" doc:"queued, assigned, running, stopping, succeeded, failed, cancelled, lost, withdrawn, or held: its job waits for other jobs, and counts as queued"`
	Reason    string     `json:"reason"`
	Site      string     `json:"site" doc:"its executor"`
	Machine   string     `json:"machine"`
	Attempt   uint32     `json:"attempt" doc:"from 1; 0 before the first"`
	Token     uint64     `json:"token" doc:"(token, attempt) only grows"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	RunMs     *int64     `json:"run_ms" doc:"how long it ran, by the log's clock: what the ledger charges; over an outage the dates may lie further apart"`
	ExitCode  *int       `json:"exit_code"`
	Signal    *int       `json:"signal"`
	// Usage is of the attempt of this number.
	Usage *AttemptUsage `json:"usage,omitempty" doc:"what the attempt has used, as its site measured it; left out until it has ended, and where nothing is known"`
	// FilesAway is left out if all that it left is here.
	FilesAway *FilesAway `json:"files_away,omitempty" doc:"of what it left at another site, having failed or been cancelled there, if that is not here"`
}

// FilesAway says why files that a task has left are not at its owner.
type FilesAway struct {
	Why    string `json:"why"`
	Coming bool   `json:"coming" doc:"they are on their way; else they will not come"`
}

// Cancelled answers a request to cancel several jobs.
type Cancelled struct {
	Items []CancelledJob `json:"items" doc:"one per job, in the order in which they were named"`
	More  bool           `json:"more,omitempty" doc:"by label: there are others yet"`
}

// CancelledJob is what became of one job that was to be cancelled: one of State
// and Problem.
type CancelledJob struct {
	Job     string   `json:"job" doc:"as it was named"`
	State   string   `json:"state,omitempty" doc:"the job's, now that the cancellation was accepted"`
	Problem *Problem `json:"problem,omitempty" doc:"why it was not"`
}

// Prioritized answers a request to change the priority of several jobs.
type Prioritized struct {
	Items []PrioritizedJob `json:"items" doc:"one per job, in the order in which they were named"`
	More  bool             `json:"more,omitempty" doc:"by user or label: there are others yet"`
}

// PrioritizedJob is what became of one job whose priority was to change: State and Priority, or Problem.
type PrioritizedJob struct {
	Job      string   `json:"job" doc:"as it was named"`
	State    string   `json:"state,omitempty" doc:"the job's, now that its priority was changed"`
	Priority int32    `json:"priority" doc:"that it has now"`
	Problem  *Problem `json:"problem,omitempty" doc:"why it was not"`
}

// Waited answers a request to wait for jobs.
type Waited struct {
	Items []WaitedJob `json:"items" doc:"one per job, in the order in which they were named"`
	Done  bool        `json:"done" doc:"all have ended"`
	Freshness
}

// WaitedJob is how far one job is that was waited for.
type WaitedJob struct {
	Job     string            `json:"job" doc:"as it was named"`
	State   string            `json:"state,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Counts  map[string]uint32 `json:"counts,omitempty" doc:"tasks per state"`
	EndedAt *time.Time        `json:"ended_at,omitempty"`
	Over    bool              `json:"over" doc:"there is nothing to wait for: it has ended, or is not known"`
	Problem *Problem          `json:"problem,omitempty" doc:"why nothing can be said of it"`
}

// Output is one line of the output of several tasks: a piece of one task's, why
// there is none, or where to go on.
type Output struct {
	Task    *uint32  `json:"task,omitempty" doc:"index"`
	Attempt uint32   `json:"attempt,omitempty" doc:"whose text it is: who asks again knows by it what was read before"`
	Text    string   `json:"text,omitempty"`
	Base64  []byte   `json:"base64,omitempty" doc:"instead of text, of what is not UTF-8"`
	Problem *Problem `json:"problem,omitempty" doc:"the task's output is not there, or broke off"`
	Next    string   `json:"next,omitempty" doc:"on the last line: cursor of the next tasks"`
}

// Kept is what one site says of a task's output.
type Kept struct {
	Task    uint32   `json:"task" doc:"its place in the job"`
	Attempt uint32   `json:"attempt,omitempty" doc:"the newest attempt whose output the site has; left out: none"`
	Problem *Problem `json:"problem,omitempty" doc:"what has become of its output there"`
}

// Resources of a site or machine.
type Resources struct {
	CPU    float64 `json:"cpu" doc:"cores"`
	Memory string  `json:"memory"`
	GPU    int64   `json:"gpu"`
}

// Site is one member of the federation.
type Site struct {
	ID          string    `json:"id"`
	State       string    `json:"state" enum:"alive,suspect,lost,left"`
	Closed      string    `json:"closed,omitempty" enum:"draining,leaving,disk-full,trouble,state-differs" doc:"why it lends nothing, as its broker says; left out: it lends, or is away. What runs there goes on"`
	Voter       bool      `json:"voter"`
	Incarnation uint64    `json:"incarnation"`
	Addresses   Addresses `json:"addresses"`
	Capacity    Resources `json:"capacity" doc:"all it has"`
	Exposed     Resources `json:"exposed" doc:"what it lends"`
	Assigned    Resources `json:"assigned" doc:"what the federation uses of that"`
	Home        Resources `json:"home" doc:"what it uses itself, outside the order"`
	Runs        []string  `json:"runs" doc:"the tasks its exposed machines run: commands, images or both"`
	Machines    []Machine `json:"machines"`
	Contact     *Contact  `json:"contact,omitempty" doc:"whether the asked broker reaches this site's API; left out: it is its own, or that is not known yet"`
}

// Contact is whether one broker reaches another site's API.
type Contact struct {
	Reached bool   `json:"reached"`
	Address string `json:"address" doc:"that the site has registered"`
	Why     string `json:"why,omitempty" doc:"it is not reached, and what to do"`
}

// Introduction is how a broker answers another one that checks its address.
type Introduction struct {
	Site       string   `json:"site" doc:"whose broker answers"`
	Federation string   `json:"federation"`
	You        *Contact `json:"you,omitempty" doc:"whether it reaches the API of the site that asks; left out: it does not know yet"`
}

// Unreached is a site that does not reach this broker's API.
type Unreached struct {
	By      string `json:"by" doc:"the site that says so"`
	Address string `json:"address" doc:"that it has tried"`
	Why     string `json:"why"`
}

// Addresses of a broker, host:port.
type Addresses struct {
	HTTP string `json:"http"`
	Peer string `json:"peer"`
}

// Machine is one exposed machine.
type Machine struct {
	Name     string    `json:"name"`
	Exposed  Resources `json:"exposed"`
	Free     Resources `json:"free"`
	Runs     []string  `json:"runs" doc:"commands, images or both"`
	MaxTasks int64     `json:"max_tasks,omitempty" doc:"tasks of the federation at once; left out: as many as fit"`
	// Labels that jobs select by.
	Labels   map[string]string `json:"labels"`
	Reserved string            `json:"reserved,omitempty" doc:"the job it is held for"`
}

// Queue is what one owner has waiting.
type Queue struct {
	Site     string  `json:"site"`
	Waiting  uint64  `json:"waiting" doc:"tasks"`
	CPU      float64 `json:"cpu" doc:"cores they need together"`
	OldestMs int64   `json:"oldest_ms" doc:"log time, in ms, at which the oldest was queued"`
	Priority string  `json:"priority" doc:"now, decimal, in the ledger's unit"`
}

// SiteQuotas is what one site uses of its quotas.
type SiteQuotas struct {
	Site   string  `json:"site"`
	Quotas []Quota `json:"quotas"`
}

// Quota is what a site uses of one thing and may use.
type Quota struct {
	Quota   string `json:"quota" enum:"tasks,jobs,bytes,requirements,numbers,kept_jobs,kept_bytes,records"`
	Used    uint64 `json:"used"`
	Limit   uint64 `json:"limit" doc:"an equal part of what the federation bears, so it changes as sites join and go"`
	Full    string `json:"full" enum:"refuse,drop_oldest" doc:"what becomes of more: the job is refused, or the oldest ended ones go"`
	Meaning string `json:"meaning"`
}

// Ledger is who used how much of whose machines.
type Ledger struct {
	Index  uint64    `json:"index" doc:"entry number it is of"`
	Time   int64     `json:"time" doc:"log time in ms"`
	Unit   string    `json:"unit"`
	Sites  []Account `json:"sites"`
	Matrix []Cell    `json:"matrix"`
	Freshness
}

// Account is one site's standing; decimal strings in the ledger's unit.
type Account struct {
	Site         string `json:"site"`
	Contribution string `json:"contribution"`
	Utility      string `json:"utility"`
	Priority     string `json:"priority" doc:"contribution less utility; all sum to zero"`
}

// Cell is what an owner's ended tasks used of an executor's machines.
type Cell struct {
	Owner    string `json:"owner"`
	Executor string `json:"executor"`
	Tasks    uint64 `json:"tasks"`
	A        string `json:"a" doc:"Σw"`
	B        string `json:"b" doc:"Σw(s+e−1)"`
	R        string `json:"r" doc:"Σw·r"`
}

// Majority is how far a voter is from its nearest majority of the voters.
type Majority struct {
	Site        string `json:"site"`
	RoundTripUs int64  `json:"round_trip_us" doc:"the round trip to the farthest voter of that majority in microseconds, the least measured lately; of both ends' words the greater"`
	Turns       bool   `json:"turns" doc:"it leads in turn: its majority is about as near as the nearest"`
}

// Status is what a broker knows of itself and the federation.
type Status struct {
	Site        string     `json:"site"`
	Leader      string     `json:"leader" doc:"the site that orders; empty when unknown"`
	LeaderWhy   string     `json:"leader_why,omitempty" doc:"why it is there, for people; left out: not known here"`
	Term        uint64     `json:"term"`
	Index       uint64     `json:"index" doc:"entry number applied here"`
	StateHash   *StateHash `json:"state_hash" doc:"null with hash=false"`
	Version     string     `json:"version"`
	Federation  string     `json:"federation"`
	Incarnation uint64     `json:"incarnation"`
	Voters      []string   `json:"voters"`
	Members     []string   `json:"members"`
	Handlers    []Handler  `json:"handlers"`
	// Estimates of starts are the asked broker's own.
	Estimates Calibration `json:"estimates"`
	// Compared is how the asked broker's state compares with other brokers'.
	Compared Compared `json:"compared"`
	// Outputs is what the asked broker keeps of the output of ended attempts.
	Outputs Outputs `json:"outputs"`
	// Files is what the site's store of files has.
	Files []SpaceUse `json:"files,omitempty" doc:"what each space of the site's store of files has; left out: it keeps none"`
	// ShutOut is of a site that was expelled, or whose key was replaced.
	ShutOut string `json:"shut_out,omitempty" doc:"why the federation takes nothing that this broker says, with what to do: the site was expelled, or its key replaced; left out: it takes it"`
	// Majorities are of the voters, by the asked broker's own measurements and theirs.
	Majorities []Majority `json:"majorities,omitempty" doc:"how far each voter is from a majority of the voters; left out: the asked broker is no voter, or has not measured yet"`
	// Unreached lists sites that do not reach the asked broker's API.
	Unreached []Unreached `json:"unreached,omitempty" doc:"sites that do not reach this broker's API; left out: none says so"`
	Drain
	Freshness
}

// Outputs is what a site keeps of the output of ended attempts.
type Outputs struct {
	Kept           int64      `json:"kept" doc:"attempts whose output is kept"`
	Bytes          int64      `json:"bytes" doc:"as they count against max_bytes: 1024 at least for each attempt"`
	MaxBytes       int64      `json:"max_bytes" doc:"the oldest are removed when all together are more"`
	KeepMs         int64      `json:"keep_ms" doc:"so long after its attempt's end an output stays, if there is room"`
	Oldest         *time.Time `json:"oldest,omitempty" doc:"end of the oldest attempt whose output is kept; left out: none is"`
	RemovedByAge   uint64     `json:"removed_by_age" doc:"attempts whose output was removed since the broker's start, being too old"`
	RemovedByBytes uint64     `json:"removed_by_bytes" doc:"likewise, to make room"`
	Brought        uint64     `json:"brought" doc:"of this site's own tasks that ran at other sites, brought here since the broker's start"`
	Waiting        int        `json:"waiting" doc:"of those that have ended there and are to be brought here yet"`
	Trouble        string     `json:"trouble,omitempty" doc:"why outputs cannot be put together now; they stay in files of their own"`
}

// Compared is how a broker's state compares with other brokers'. Brokers compare
// while they run; one whose state differs from a majority of the voters stops.
type Compared struct {
	Index   uint64   `json:"index" doc:"newest entry at which states were compared; 0 for none yet"`
	With    []string `json:"with" doc:"sites that had the same state there"`
	Differs []string `json:"differs" doc:"sites whose state or history was another one when it was compared last"`
	Liars   []string `json:"liars" doc:"sites proven to have signed two different states or histories of one entry"`
	Unsure  string   `json:"unsure,omitempty" doc:"why this broker offers nothing and starts nothing for other sites; left out: it does"`
}

// Drain says what a site takes on.
type Drain struct {
	Draining bool `json:"draining" doc:"nothing for other sites; what runs goes on"`
	Own      bool `json:"own" doc:"nothing for its own users either: their jobs go to the federation"`
}

// DrainRequest asks a broker to drain its site.
type DrainRequest struct {
	Own bool `json:"own" required:"false" default:"false" doc:"take on nothing for the site's own users either"`
}

// LeaveRequest asks a broker to take its site out of the federation.
type LeaveRequest struct {
	Now    bool `json:"now" required:"false" default:"false" doc:"end what runs and hand it back at once, instead of waiting up to 10 minutes"`
	Forget bool `json:"forget" required:"false" default:"false" doc:"end the site's own waiting jobs as lost, instead of keeping them until it comes back"`
}

// Leaving answers a LeaveRequest: the site drains, and its broker ends once it
// has left.
type Leaving struct {
	Leaving bool `json:"leaving"`
}

// StateHash is the hash of the state right after entry Index.
type StateHash struct {
	Index uint64 `json:"index"`
	Hash  string `json:"hash"`
}

// Handler is one resource driver's line for people.
type Handler struct {
	Name    string `json:"name"`
	Status  string `json:"status" doc:"what it has, and what holds tasks to the cores and memory that they asked for"`
	Trouble string `json:"trouble,omitempty" doc:"why machines of it could not start tasks, and when they try again; absent: all is well"`
}

// Policy is the federation's replicated parameters. In a PUT, fields left out
// keep their value.
type Policy struct {
	Policy         string `json:"policy" required:"false" enum:"ORIG_DIRECT,REL_DIRECT,SIMPL_DIRECT,FAIRSHARE,ROUND_ROBIN,ALONE,CE"`
	Effective      string `json:"effective,omitempty" required:"false" doc:"the policy that counts, if the federation has more sites than the one chosen is for; not to be set"`
	Running        string `json:"running" required:"false" enum:"partial,completed" doc:"how a running task counts"`
	PreferOwn      bool   `json:"prefer_own" required:"false" doc:"a task goes to its own site's free machine if one fits"`
	FixedOrder     bool   `json:"fixed_order" required:"false" doc:"machines by name instead of the keyed random choice"`
	ReserveAfterMs int64  `json:"reserve_after_ms" required:"false" doc:"a task too wide for the free machines gets one reserved after this; 0 = off"`
	RetainMs       int64  `json:"retain_ms" required:"false" doc:"how long ended jobs stay"`
	RetainJobs     int64  `json:"retain_jobs" required:"false" doc:"how many ended jobs of each site stay; fewer where its quota kept_jobs is less"`
	DepartureMs    int64  `json:"departure_ms" required:"false" doc:"a lost site's waiting jobs end after this; 0 = never"`
	RateCPU        int64  `json:"rate_cpu" required:"false" doc:"charge for a milli-core"`
	RateMem        int64  `json:"rate_mem" required:"false" doc:"charge for a MiB"`
	RateGPU        int64  `json:"rate_gpu" required:"false" doc:"charge for a gpu"`
	QuantumMs      int64  `json:"quantum_ms" required:"false" doc:"fixed at the federation's start"`
	LeaseMs        int64  `json:"lease_ms" required:"false" doc:"foreign tasks run so long without word from the leader; fixed at the start"`
	MarginMs       int64  `json:"margin_ms" required:"false" doc:"the leader waits so much longer; fixed at the start"`
}

// Problem is an RFC 9457 answer. Type is stable: "urn:cloudshare:problem:NAME".
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Field and Value point at what was wrong in a job or a query.
	Field string `json:"field,omitempty"`
	Value string `json:"value,omitempty"`
	// Quota is the one of the site's that refused the job, with what is used of it,
	// how much may be, and what the job would use more; see GET /v1/quota.
	Quota string  `json:"quota,omitempty"`
	Used  *uint64 `json:"used,omitempty"`
	Limit *uint64 `json:"limit,omitempty"`
	Need  *uint64 `json:"need,omitempty"`
	// Line is the input line of an NDJSON answer, from 1; 0 elsewhere.
	Line int `json:"line,omitempty"`
	// RetryAfter is seconds, as in the header of that name; 0 = not worth it.
	RetryAfter int `json:"retry_after,omitempty"`
}

// ProblemPrefix opens every Problem's Type.
const ProblemPrefix = "urn:cloudshare:problem:"

// Error implements error in one line. It does not say the same twice.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	if strings.Contains(strings.ToLower(p.Detail), strings.ToLower(p.Title)) {
		return p.Detail
	}
	return p.Title + ": " + p.Detail
}
