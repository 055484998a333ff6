package auth

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rates"
	"github.com/cloudshare/cloudshare/node"
)

// Rates are how much may be asked in a second; 0 = no bound.
type Rates struct {
	// WrongTokens of one address are looked at; as many may come at once.
	WrongTokens int
	// Anonymous requests come from one address: without a token or session that counts. Five seconds' worth may come
	// at once.
	Anonymous int
	// User is of the requests of one user; of one token, if that has no user. Five seconds' worth may come at once. The
	// operator's are not bounded.
	User int
	// Connections are opened by one address; package transport closes more. Five seconds' worth may come at once.
	Connections int
}

// Names of the bounds, as they are counted.
const (
	BoundWrongTokens = "wrong_tokens"
	BoundAnonymous   = "anonymous"
	BoundUser        = "user"
	BoundConnections = "connections"
)

// Bounds are all of them.
var Bounds = []string{BoundWrongTokens, BoundAnonymous, BoundUser, BoundConnections}

// burst is how many seconds' worth may come at once: a page with its parts, a script that begins.
const burst = 5

// bounds judge how much is asked.
type bounds struct {
	rates            Rates
	wrong, anonymous *rates.Table[rates.Sender]
	user             *rates.Table[string]
	refused          func(bound string)
}

func newBounds(r Rates, refused func(bound string)) *bounds {
	return &bounds{
		r, rates.New[rates.Sender](r.WrongTokens, 1), rates.New[rates.Sender](r.Anonymous, burst),
		rates.New[string](r.User, burst), refused,
	}
}

// ofWrongToken counts a wrong token of an address, and refuses to look at more. A right one is always taken, so nobody
// shuts out others by trying.
func (b *bounds) ofWrongToken(r *http.Request) error {
	if wait := take(b.wrong, r); wait > 0 {
		return b.refuse(BoundWrongTokens, wait, "too-many-attempts", "Too many wrong tokens",
			fmt.Sprintf("of one address %d a second are looked at: wait, and send the right one", b.rates.WrongTokens))
	}
	return nil
}

// take counts a request for its address, if that is known, or returns how long it must wait.
func take(t *rates.Table[rates.Sender], r *http.Request) time.Duration {
	from, known := rates.SenderOf(r.RemoteAddr)
	if !known {
		return 0
	}
	return t.Take(from)
}

// ofAnonymous counts a request that no token vouches for, and refuses it if its address has sent too many. Otherwise it
// returns err, which is why it is refused; nil if it is not.
func (b *bounds) ofAnonymous(r *http.Request, err error) error {
	if wait := take(b.anonymous, r); wait > 0 {
		return b.refuse(BoundAnonymous, wait, "too-many-requests", "Too many requests without a valid token",
			fmt.Sprintf("one address may send %d a second (rates.anonymous): wait, or send a token", b.rates.Anonymous))
	}
	return err
}

// Sharer names whom a request counts for in what is bounded for each: all without a token are one, the operator, "", is
// bounded with everybody only.
func Sharer(who node.Asker) string {
	switch {
	case who.Site != "":
		return "site " + who.Site
	case who.Operator:
		return ""
	case who.User != "":
		return "user " + who.User
	default:
		return "token " + who.Token
	}
}

// ofUser counts a request of who was admitted.
func (b *bounds) ofUser(who node.Asker) error {
	key := Sharer(who)
	if key == "" {
		return nil
	}
	if wait := b.user.Take(key); wait > 0 {
		return b.refuse(BoundUser, wait, "too-many-requests", "Too many requests of the user",
			fmt.Sprintf("one user may send %d a second (rates.user): wait, or send many jobs in one request", b.rates.User))
	}
	return nil
}

func (b *bounds) refuse(bound string, wait time.Duration, name, title, detail string) error {
	b.refused(bound)
	p := problem.New(http.StatusTooManyRequests, name, title, detail)
	p.RetryAfter = int((wait + time.Second - 1) / time.Second)
	return p
}
