package command

// AttemptRef names one attempt.
type AttemptRef struct {
	Job     JobID
	Task    uint32 // index from 0
	Attempt uint32 // from 1
	Token   uint64 // number of the entry that assigned the attempt
}

// Started reports attempts that run; DelayMs is the time from assignment to exec.
type Started struct{ Attempts []StartedAttempt }

// StartedAttempt is one line of Started.
type StartedAttempt struct {
	AttemptRef
	DelayMs int64
}

// Complete reports attempts that ended.
type Complete struct{ Attempts []Ended }

// Orphans reports attempts that ended as Orphaned, and nothing else. A member that does not know this kind does
// not know the outcome, so the site sends it only once OrphansVersion is in force, and [Stopped] before.
type Orphans Complete

// OrphansVersion is the first apply version that has Orphans.
const OrphansVersion = 2

// Ended is the compact outcome of an attempt.
type Ended struct {
	AttemptRef
	Outcome  Outcome
	ExitCode int32
	Signal   int32
	Ran      bool   // it was started; a run may take 0 ms, and RunMs > 0 implies Ran
	DelayMs  int64  // assignment → exec
	RunMs    int64  // exec → end; 0 if it never ran
	Detail   string // ≤ MaxDetail bytes, e.g. "timeout after 90s"
	Output   Output // what was collected, if its job delivers
	Measured Measured
}

// Outcome is how an attempt ended, as its site saw it.
type Outcome uint8

// The outcomes.
const (
	Succeeded Outcome = iota
	Failed            // counts towards MaxAttempts; so does TimedOut
	TimedOut
	Stopped // because the state asked for it
	// Lost means that the lease ended the attempt, or that its site lost track of it. It uses up the
	// attempt but does not count as a failure. A lost attempt with a Bound is not taken for dead
	// before the bound has passed; a site that knows the attempt is dead reports Stopped instead.
	Lost
	// Orphaned means that what watched the attempt was gone without a word, while its site's broker and machine
	// stood: the task may have done that itself. It is dead, it is charged like a failure for what its site
	// measured, it does not count as one, and a few of them end the task. Only Orphans reports it.
	Orphaned
)

// Bound declares when attempts that nothing can stop from outside (a batch system's job, a cluster's
// pod) are certainly dead, whatever happens to their site. The site starts them only once this command
// is in the state, so that a loss does not return them to the queue earlier.
type Bound struct{ Attempts []BoundAttempt }

// BoundAttempt is one line of Bound: the attempt is dead at the latest BoundMs after this entry, by the
// state's clock. The state waits MarginMs longer.
type BoundAttempt struct {
	AttemptRef
	BoundMs int64
}

// Decline returns assignments that the site cannot run. Offer, if present, is installed before matching.
type Decline struct {
	Attempts []AttemptRef
	Reason   string
	// Unopened: the site has no key for what is to be run, as it says. That is no sign of a site that takes tasks and
	// runs none.
	Unopened bool
	Offer    *Offer
}

// What a Decline's flags say: an offer follows; it is Unopened.
const (
	declineOffers   = 1
	declineUnopened = 2
)

// Validate checks the job's name and the task's index.
func (a *AttemptRef) Validate() error {
	return firstError(inJob(a.Job), within("task", int64(a.Task), 0, MaxCount-1))
}

// Validate checks the bounds.
func (b *Started) Validate() error {
	if err := within("attempts", int64(len(b.Attempts)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if err := firstError(a.Validate(), within("delay_ms", a.DelayMs, 0, MaxTimeoutMs)); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the bounds.
func (b *Complete) Validate() error { return validEnds(b.Attempts, Succeeded, Lost) }

// Validate checks the bounds, and that every attempt is Orphaned.
func (b *Orphans) Validate() error { return validEnds(b.Attempts, Orphaned, Orphaned) }

// validEnds checks ends whose outcomes must be in first…last.
func validEnds(ends []Ended, first, last Outcome) error {
	if err := within("attempts", int64(len(ends)), 0, MaxReports); err != nil {
		return err
	}
	for i := range ends {
		a := &ends[i]
		if err := firstError(
			a.AttemptRef.Validate(),
			within("outcome", int64(a.Outcome), int64(first), int64(last)),
			within("delay_ms", a.DelayMs, 0, MaxTimeoutMs),
			within("run_ms", a.RunMs, 0, MaxTimeoutMs),
			within("bytes of detail", int64(len(a.Detail)), 0, MaxDetail),
			a.Output.validate(), a.Measured.validate(),
		); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks that every attempt has a bound within the longest duration.
func (b *Bound) Validate() error {
	if err := within("attempts", int64(len(b.Attempts)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if err := firstError(a.Validate(), within("bound_ms", a.BoundMs, 1, MaxTimeoutMs)); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the bounds of the attempts, the reason and the offer.
func (b *Decline) Validate() error {
	err := firstError(inAttempts("attempts", b.Attempts, MaxReports),
		within("bytes of reason", int64(len(b.Reason)), 0, MaxDetail))
	if err != nil || b.Offer == nil {
		return err
	}
	return b.Offer.Validate()
}
