package node

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Asker is who asks a broker for something. The gate of the API says so, by the token or the connection with which a
// request comes.
type Asker struct {
	// Site whose broker asks; "" = a client of this one.
	Site string
	// User of this site; "" = the token names none: it is the site's own.
	User string
	// Operator reports whether all of this site's jobs are the asker's to see and to end.
	Operator bool
	// Token is the ID of the token, "" = none: another broker, or a program on the operator's socket.
	Token string
}

type askerKey struct{}

// WithAsker says who asks.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerOf returns who asks; nobody, who owns nothing, where that was not said.
func AskerOf(ctx context.Context) Asker {
	a, _ := ctx.Value(askerKey{}).(Asker)
	return a
}

// Sight is how much of a job somebody may see.
type Sight int

const (
	// SeesNothing is for a job that is another user's of the same site.
	SeesNothing Sight = iota
	// SeesOutline is for state, reason, site, counts, times and needs, of a job that is another site's than the
	// asker's.
	SeesOutline
	// SeesAll is for a job that is the asker's, who may end it, too.
	SeesAll
)

// Sees returns how much of a job the asker may see at the broker of the site here. The user is the job's if its site is
// here, "" if it has none: then it is the site's own. Another broker speaks for all of its own site's users.
func (a Asker) Sees(job command.JobID, here, user string) Sight {
	switch {
	case a == Asker{}:
		return SeesNothing
	case a.Site != "":
		if job.Site == a.Site {
			return SeesAll
		}
		return SeesOutline
	case job.Site != here:
		return SeesOutline
	case a.Operator || a.User == user:
		return SeesAll
	}
	return SeesNothing
}
