package command

// AheadVersion is the first apply version that has Ahead and HandBack.
const AheadVersion = 3

// MaxAheadMs bounds what a site says that its machines idle between two tasks, and so how long a run may be that earns
// tasks ahead.
const MaxAheadMs = 5000

// Ahead says how long a machine of the site idles between the end of a task and what it is assigned next, because its
// reports travel. If runs there are short beside that, its machines are assigned tasks ahead. A registration sets it
// to 0: none.
type Ahead struct{ IdleMs int64 }

// HandBack returns assignments that the site has not begun, and that could begin elsewhere sooner. It keeps no job from
// the site, unlike a Decline.
type HandBack struct {
	Attempts []AttemptRef
	Reason   string
}

// Validate checks the bounds.
func (b *Ahead) Validate() error { return within("idle_ms", b.IdleMs, 0, MaxAheadMs) }

// Validate checks the bounds of the attempts and the reason.
func (b *HandBack) Validate() error {
	return firstError(inAttempts("attempts", b.Attempts, MaxReports),
		within("bytes of reason", int64(len(b.Reason)), 0, MaxDetail))
}
