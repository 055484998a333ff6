package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Role is what the holder of a token may do.
type Role string

// Roles, each of which may do what the ones before it may.
const (
	ReadOnly Role = "read-only" // look
	User     Role = "user"      // submit jobs and end them
	Operator Role = "operator"  // everything
)

var ranks = map[Role]int{ReadOnly: 1, User: 2, Operator: 3}

// Covers reports whether the role may do what another one may. A role that this program does not know covers nothing.
func (r Role) Covers(other Role) bool {
	return ranks[r] > 0 && ranks[other] > 0 && ranks[r] >= ranks[other]
}

// Token is what is kept of one.
type Token struct {
	ID      string // of 8 letters: no secret, it stands in lists and logs
	Name    string // what for
	User    string // whose it is, the name that jobs carry; "" = the site's own
	Role    Role
	Created time.Time
	Expires time.Time // zero: never

	hash [sha256.Size]byte // of its text
}

// Expired reports whether it is over at a moment.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Bounds of a store.
const (
	MaxTokens = 10_000
	maxName   = 100 // bytes
	maxUser   = 63  // bytes
)

// Errors of tokens that are well-formed.
var (
	// ErrUnknown reports a token that was never made here, or was revoked.
	ErrUnknown = errors.New("this broker knows no such token: it is another site's, or was revoked")
	// ErrExpired reports a token whose time is over.
	ErrExpired = errors.New("the token has expired")
	// ErrInvalid reports a token that cannot be made.
	ErrInvalid = errors.New("invalid token")
	// ErrFull reports that there are MaxTokens.
	ErrFull = errors.New("too many tokens: revoke some")
)

// UserForm words what ValidUser wants of a name.
const UserForm = "1 to 63 small letters, digits, '.', '_', '-' or '@', the first a letter or digit"

// ValidUser reports whether a text can be a user's name: it stands in lists, logs and file names as it is.
func ValidUser(name string) bool {
	for i, r := range name {
		plain := 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
		if !plain && (i == 0 || !strings.ContainsRune("._-@", r)) {
			return false
		}
	}
	return name != "" && len(name) <= maxUser
}

// validate reports why a token cannot be made.
func (t Token) validate() error {
	if t.Name == "" || len(t.Name) > maxName {
		return fmt.Errorf("%w: its name must have 1 to %d bytes", ErrInvalid, maxName)
	}
	for _, r := range t.Name {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return fmt.Errorf("%w: its name must be one line of UTF-8", ErrInvalid)
		}
	}
	if !ValidUser(t.User) && t.User != "" {
		return fmt.Errorf("%w: user %.80q: a name has %s", ErrInvalid, t.User, UserForm)
	}
	if t.User == "" && t.Role == User {
		return fmt.Errorf("%w: role %s needs the name of its user", ErrInvalid, User)
	}
	if ranks[t.Role] == 0 {
		return fmt.Errorf("%w: role %.20q; use %s, %s or %s", ErrInvalid, t.Role, ReadOnly, User, Operator)
	}
	if t.Expires.Year() > 9999 { // no form of dates has them
		return fmt.Errorf("%w: its end must be before the year 10000", ErrInvalid)
	}
	if t.Expired(t.Created) {
		return fmt.Errorf("%w: it would have expired already", ErrInvalid)
	}
	return nil
}
