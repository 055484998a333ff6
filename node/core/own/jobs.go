// Package own answers for the jobs that only this broker knows, at home, held or on their way to
// the federation: lists, views, tasks, and why one waits. It holds nothing of its own, and
// changes nothing.
package own

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/core/after"
	"github.com/cloudshare/cloudshare/node/core/gates"
	"github.com/cloudshare/cloudshare/node/core/homejobs"
	"github.com/cloudshare/cloudshare/node/core/lend"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/core/usage"
)

// Jobs are those that only this broker knows.
type Jobs struct {
	site  string
	out   *turn.Outbox
	home  *homejobs.Book
	pubs  *publish.Book
	after *after.Book
	lend  *lend.Book
	usage *usage.Book
	// alone reports whether the site has lost touch with the quorum.
	alone func() bool
	// heldWhy says why a job is held.
	heldWhy func(num uint64) string
	gates   Gates
}

// Gates says what users have asked of jobs that only gates do.
type Gates interface {
	WasHeld(num uint64) bool
	Cancelled(num uint64) (runs []fsm.TaskRun, why string)
}

var _ Gates = (*gates.Book)(nil)

// New returns the jobs of a site's books.
func New(site string, out *turn.Outbox, h *homejobs.Book, p *publish.Book, a *after.Book, l *lend.Book,
	u *usage.Book, alone func() bool, heldWhy func(num uint64) string, g Gates,
) Jobs {
	return Jobs{
		site: site, out: out, home: h, pubs: p, after: a, lend: l, usage: u,
		alone: alone, heldWhy: heldWhy, gates: g,
	}
}
