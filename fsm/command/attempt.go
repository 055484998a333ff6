package command

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

// Decline hands assignments back. Offer, if present, is installed before matching.
type Decline struct {
	Attempts []AttemptRef
	Reason   string
	Offer    *Offer
}

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
func (b *Complete) Validate() error {
	if err := within("attempts", int64(len(b.Attempts)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if err := firstError(
			a.AttemptRef.Validate(),
			within("outcome", int64(a.Outcome), 0, int64(Lost)),
			within("delay_ms", a.DelayMs, 0, MaxTimeoutMs),
			within("run_ms", a.RunMs, 0, MaxTimeoutMs),
			within("bytes of detail", int64(len(a.Detail)), 0, MaxDetail),
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
