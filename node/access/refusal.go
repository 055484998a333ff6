package access

// Refusal says why a token is not taken that the site's identity provider signed, or should have (package openid).
// Whoever sends the token may know: it holds nothing of it that is secret.
type Refusal struct {
	Kind RefusalKind
	Why  string // one line, with what to do
}

// RefusalKind is what a refusal means for whoever asks.
type RefusalKind int

const (
	// Unproven is for a token that says nothing: forged, expired, or another one's.
	Unproven RefusalKind = iota
	// NoRole is for a user of the provider who may do nothing at this site.
	NoRole
	// Away is for a token that cannot be judged now, as the provider does not answer.
	Away
)

// Error implements error.
func (r *Refusal) Error() string { return r.Why }
