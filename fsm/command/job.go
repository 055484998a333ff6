package command

import "fmt"

// Submit publishes jobs of the command's own site.
type Submit struct {
	// Settled promises that the site will never publish a job with a number < Settled that is not in
	// the state yet; such a submission is refused as JobRetired.
	Settled uint64
	Jobs    []JobSpec
}

// JobSpec is a job as the state machine sees it: what matching needs, and a payload that it never reads
// (the command line, image, environment, name and labels).
type JobSpec struct {
	Num   uint64 // the job is Site.Num with the command's site
	Count uint32 // tasks, 1 … MaxCount
	Need  Resources
	Image bool // the payload names a container image to run the tasks in
	// Delivers: the payload declares outputs. A task that succeeds elsewhere ends when its owner has them; see Deliver.
	Delivers bool `json:",omitempty"`
	// Gated: its tasks wait only when its owner releases them, and one that failed or was lost is held again; see
	// Release. Since version 4.
	Gated       bool  `json:",omitempty"`
	TimeoutMs   int64 // 0 = none
	MaxAttempts uint32
	OnLoss      OnLoss
	Priority    int32
	// Nice is how willingly the job lets other jobs of its owner go first, 0 … MaxNice: of an owner's waiting tasks
	// those of the least nice go first, among them those of the highest priority. An owner ranks its users by it.
	Nice      uint32
	Only, Not []string // site names; sorted, unique
	// Selectors must all be satisfied by a machine's labels. Each has the form of Selector.String;
	// sorted, unique.
	Selectors []string `json:",omitempty"`
	CreatedMs int64    // unix milliseconds, for people to read
	Payload   []byte
}

// What the marks of an encoded JobSpec say: it has an image; it delivers; it is gated.
const (
	jobImage    = 1
	jobDelivers = 2
	jobGated    = 4
)

func (j *JobSpec) marks() (v byte) {
	if j.Image {
		v |= jobImage
	}
	if j.Delivers {
		v |= jobDelivers
	}
	if j.Gated {
		v |= jobGated
	}
	return v
}

// OnLoss says what happens to a task whose site is lost.
type OnLoss uint8

// The three answers to a loss; Fenced is the default.
const (
	// Fenced requeues the task once its attempt must have stopped.
	Fenced OnLoss = iota
	// Immediate requeues it at the first hint, and at a loss whatever its attempt's stop bound;
	// attempts may overlap.
	Immediate
	// Never ends the task as lost.
	Never
)

// Cancel ends a job of the command's own site, or one task of it.
type Cancel struct {
	Job  JobID
	Task int64 // −1 = all
	// At is the site whose broker was asked for it; empty means the owner's.
	At string
}

// Validate checks every job, and that together they fit into one command.
func (b *Submit) Validate() error {
	if err := within("jobs", int64(len(b.Jobs)), 0, MaxJobsPerSubmit); err != nil {
		return err
	}
	size := 0
	for i := range b.Jobs {
		if err := b.Jobs[i].Validate(); err != nil {
			return fmt.Errorf("job %d: %w", b.Jobs[i].Num, err)
		}
		size += b.Jobs[i].SizeBound()
	}
	return within("bytes of all jobs", int64(size), 0, MaxSubmit)
}

// Validate checks the bounds; the error names the field and the bound.
func (j *JobSpec) Validate() error {
	if j.Num == 0 {
		return fmt.Errorf("%w: num 0: jobs are numbered from 1", ErrOutOfBounds)
	}
	return firstError(
		within("count", int64(j.Count), 1, MaxCount),
		within("milli_cpu", j.Need.MilliCPU, 1, MaxMilliCPU),
		CheckResources("", j.Need),
		within("timeout_ms", j.TimeoutMs, 0, MaxTimeoutMs),
		within("max_attempts", int64(j.MaxAttempts), 1, MaxAttempts),
		within("on_loss", int64(j.OnLoss), 0, int64(Never)),
		within("priority", int64(j.Priority), -MaxPriority, MaxPriority),
		within("nice", int64(j.Nice), 0, MaxNice),
		CheckSites("only", j.Only),
		CheckSites("not", j.Not),
		CheckSelectors(j.Selectors),
		within("created_ms", j.CreatedMs, 0, MaxUnixMs),
		within("bytes of payload", int64(len(j.Payload)), 0, MaxPayload),
	)
}

// Validate checks the bounds.
func (b *Cancel) Validate() error {
	if b.At != "" && !ValidSite(b.At) {
		return fmt.Errorf("%w: at: %.80q is no site name", ErrOutOfBounds, b.At)
	}
	return firstError(inJob(b.Job), within("task", b.Task, -1, MaxCount-1))
}

// MaxSubmit bounds the sum of the SizeBounds of a Submit's jobs, so that the command stays below
// MaxCommand.
const MaxSubmit = MaxCommand - 1024

// SizeBound returns an upper bound of the bytes that the job takes in an encoded command. Callers that
// fill Submits use it.
func (j *JobSpec) SizeBound() int {
	const numbers = 16 * 10 // every field, and every list's length, as the longest varint
	size := numbers + len(j.Payload)
	for _, list := range [...][]string{j.Only, j.Not} {
		for _, s := range list {
			size += 1 + len(s)
		}
	}
	for _, s := range j.Selectors {
		size += 2 + len(s)
	}
	return size
}
