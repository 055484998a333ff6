package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/own"
)

// cursor is a place in the merged list of the federation's jobs and this site's
// own ones: the next job is older than both. It holds at the broker that made
// it only: another one has other own jobs, and would leave some out.
type cursor struct {
	site string // whose own jobs; "" = not said yet
	seq  uint64 // federation jobs with a smaller Seq; 0 = from the newest
	num  uint64 // own jobs with a smaller number; 0 = from the newest
	// fedDone and ownDone: nothing more of that kind.
	fedDone, ownDone bool
}

// parseCursor reads what String wrote; "" is the start.
func parseCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return c, fmt.Errorf("%w: %.40q is not what a list gave as next; start again without a cursor", node.ErrBadCursor, s)
	}
	c.site = parts[0]
	if c.seq, c.fedDone, err = parsePlace(parts[1]); err != nil {
		return c, err
	}
	c.num, c.ownDone, err = parsePlace(parts[2])
	return c, err
}

// cursorHere reads a cursor of this broker and of a state that it has reached.
func (rd *Reader) cursorHere(s string) (cursor, error) {
	c, err := parseCursor(s)
	if err != nil {
		return c, err
	}
	if s == "" {
		c.site = rd.site
	}
	if c.site != rd.site {
		return c, fmt.Errorf("%w: %.100q was given by the broker of %.63q, this is %s's, which lists other home jobs; go on there, or start again here without a cursor",
			node.ErrBadCursor, s, c.site, rd.site)
	}
	ahead := false
	rd.replica.View(func(state *fsm.State) { ahead = c.seq > state.NextSeq() })
	if ahead {
		return c, fmt.Errorf("%w: %.100q is of a state that this broker does not have; start again without a cursor", node.ErrBadCursor, s)
	}
	return c, nil
}

func parsePlace(s string) (n uint64, done bool, err error) {
	if s == "-" {
		return 0, true, nil
	}
	n, err = strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%w: part %.40q is no number; start again without a cursor", node.ErrBadCursor, s)
	}
	return n, false, nil
}

// String returns the form for clients; "" at the end of the list.
func (c cursor) String() string {
	if c.fedDone && c.ownDone {
		return ""
	}
	place := func(n uint64, done bool) string {
		if done {
			return "-"
		}
		return strconv.FormatUint(n, 10)
	}
	return c.site + "." + place(c.seq, c.fedDone) + "." + place(c.num, c.ownDone)
}

const (
	// ownLooks bounds the looks of one page.
	ownLooks = 10
	// emptyPages bounds how many pages without a job are passed over for one.
	emptyPages = 3
)

// Jobs lists the federation's jobs and this site's own, newest first. A page
// may hold fewer than the limit, even none, although Next is set.
func (rd *Reader) Jobs(ctx context.Context, q node.JobQuery) (page node.JobPage, err error) {
	for range emptyPages {
		if page, err = rd.jobsPage(ctx, q); err != nil || len(page.Items) > 0 || page.Next == "" {
			return page, err
		}
		q.Cursor = page.Next
	}
	return page, nil
}

func (rd *Reader) jobsPage(ctx context.Context, q node.JobQuery) (node.JobPage, error) {
	cur, err := rd.cursorHere(q.Cursor)
	if err != nil {
		return node.JobPage{}, err
	}
	own, err := rd.ownPage(ctx, q, cur)
	if err != nil {
		return node.JobPage{}, err
	}
	fed, fedNext := rd.federationPage(q, cur, &own)
	return merge(fed, own, fedNext, q.Limit, cur), nil
}

type listed struct {
	node.Job
	place uint64 // Seq or number
}

// ownPage is what this site alone knows, at most the limit of it.
type ownPage struct {
	jobs []listed
	// rest is the number below which there may be more; 0 = no more.
	rest uint64
}

func (rd *Reader) ownPage(ctx context.Context, q node.JobQuery, cur cursor) (ownPage, error) {
	if cur.ownDone || (q.Site != "" && q.Site != rd.site) {
		return ownPage{}, nil
	}
	page, size := ownPage{rest: cur.num}, 0
	for range ownLooks {
		below, limit := page.rest, q.Limit-len(page.jobs)
		if len(q.Labels) > 0 || q.Name != "" {
			limit = own.Steps // the filter works outside the core's turn
		}
		var got []own.Record // the loop's until query returns, as is rest
		var rest uint64
		if err := rd.query(ctx, func(c *core.Core) { got, rest = c.Own().Records(below, q.State, limit) }); err != nil {
			return ownPage{}, err
		}
		page.rest = rest
		for i := range got {
			if !q.Matches(got[i].Spec.Payload, rd.sealer) {
				continue
			}
			size += len(got[i].Spec.Payload)
			if n := len(page.jobs); n > 0 && (n == q.Limit || size > fsm.MaxPageBytes) {
				page.rest = page.jobs[n-1].place
				return page, nil
			}
			page.jobs = append(page.jobs, listed{got[i].View(rd.site, rd.sealer), got[i].Spec.Num})
		}
		if page.rest == 0 || len(page.jobs) == q.Limit {
			break
		}
	}
	return page, nil
}

// federationPage reads the federation's jobs, and takes from own what has been
// published since own was read, or is not known to be published yet.
func (rd *Reader) federationPage(q node.JobQuery, cur cursor, own *ownPage) (page []listed, next uint64) {
	f := fsm.JobFilter{Owner: q.Site, State: q.State}
	if len(q.Labels) > 0 {
		f.Match = q.MatchesPublic
	}
	if q.Name != "" {
		return rd.namedPage(q, f, cur, own)
	}
	rd.replica.View(func(s *fsm.State) {
		own.dropPublished(s)
		if cur.fedDone {
			return
		}
		var views []fsm.JobView
		views, next = s.Jobs(f, cur.seq, q.Limit)
		for i := range views {
			page = append(page, listed{rd.jobOf(&views[i]), views[i].Seq})
		}
	})
	return page, next
}

const (
	// namedLook is how many jobs are copied at a time to look for a name, namedLooks bounds such looks of one page.
	namedLook, namedLooks = 1000, 20
)

// namedPage is federationPage for a name, which is sealed: this site's jobs only are opened, beside the state, so that
// the state does not wait for it.
func (rd *Reader) namedPage(q node.JobQuery, f fsm.JobFilter, cur cursor, own *ownPage) (page []listed, next uint64) {
	if cur.fedDone || q.Site != "" && q.Site != rd.site {
		rd.replica.View(own.dropPublished)
		return nil, 0
	}
	f.Owner, next = rd.site, cur.seq
	size := 0
	for look := range namedLooks {
		var views []fsm.JobView
		rd.replica.View(func(s *fsm.State) {
			if look == 0 { // in one view with the jobs, or one that is published in between is listed twice
				own.dropPublished(s)
			}
			views, next = s.Jobs(f, next, namedLook)
		})
		for i := range views {
			if !q.Matches(views[i].Spec.Payload, rd.sealer) {
				continue
			}
			size += len(views[i].Spec.Payload)
			if n := len(page); n > 0 && (n == q.Limit || size > fsm.MaxPageBytes) {
				return page, page[n-1].place
			}
			rd.replica.View(func(*fsm.State) { page = append(page, listed{rd.jobOf(&views[i]), views[i].Seq}) })
		}
		if next == 0 {
			break
		}
	}
	return page, next
}

// dropPublished leaves out what the state knows by now.
func (p *ownPage) dropPublished(s *fsm.State) {
	p.jobs = slices.DeleteFunc(p.jobs, func(l listed) bool {
		_, known := s.Job(l.ID)
		return known
	})
}

// merge takes the newest of both lists, until one of them ends here but goes on
// elsewhere: what follows in it may be newer than what the other one has.
func merge(fed []listed, mine ownPage, fedNext uint64, limit int, cur cursor) node.JobPage {
	page := node.JobPage{Items: []node.Job{}}
	f, o, own := 0, 0, mine.jobs
	more := func() bool {
		return (f < len(fed) || fedNext == 0) && (o < len(own) || mine.rest == 0) && (f < len(fed) || o < len(own))
	}
	for len(page.Items) < limit && more() {
		if o == len(own) || (f < len(fed) && !fed[f].SubmittedAt.Before(own[o].SubmittedAt)) {
			page.Items = append(page.Items, fed[f].Job)
			cur.seq = fed[f].place
			f++
			continue
		}
		page.Items = append(page.Items, own[o].Job)
		cur.num = own[o].place
		o++
	}
	if o == len(own) {
		cur.num, cur.ownDone = mine.rest, mine.rest == 0
	}
	if f == len(fed) {
		cur.seq, cur.fedDone = fedNext, fedNext == 0
	}
	page.Next = cur.String()
	return page
}
