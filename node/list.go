package node

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm"
)

// cursor is a place in the merged list of the federation's jobs and this site's
// own ones: the next job is older than both.
type cursor struct {
	seq uint64 // federation jobs with a smaller Seq; 0 = from the newest
	num uint64 // own jobs with a smaller number; 0 = from the newest
	// fedDone and ownDone: nothing more of that kind.
	fedDone, ownDone bool
}

// parseCursor reads what String wrote; "" is the start.
func parseCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	fed, own, ok := strings.Cut(s, ".")
	if !ok {
		return c, fmt.Errorf("%w %.40q", ErrBadCursor, s)
	}
	if c.seq, c.fedDone, err = parsePlace(fed); err != nil {
		return c, err
	}
	c.num, c.ownDone, err = parsePlace(own)
	return c, err
}

func parsePlace(s string) (n uint64, done bool, err error) {
	if s == "-" {
		return 0, true, nil
	}
	n, err = strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%w: part %.40q", ErrBadCursor, s)
	}
	return n, false, nil
}

// String is the form for clients; "" at the end of the list.
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
	return place(c.seq, c.fedDone) + "." + place(c.num, c.ownDone)
}

// Jobs lists the federation's jobs and this site's own, newest first. A page
// may hold fewer than the limit although Next is set.
func (b *Broker) Jobs(ctx context.Context, q JobQuery) (JobPage, error) {
	cur, err := parseCursor(q.Cursor)
	if err != nil {
		return JobPage{}, err
	}
	own, err := b.ownPage(ctx, q, cur)
	if err != nil {
		return JobPage{}, err
	}
	fed, fedNext := b.federationPage(q, cur, &own)
	return merge(fed, own, fedNext, q.Limit, cur), nil
}

type listed struct {
	Job
	place uint64 // Seq or number
}

// ownPage is what this site alone knows, at most the limit of it.
type ownPage struct {
	jobs []listed
	// rest is the number below which there may be more; 0 = no more.
	rest uint64
}

func (b *Broker) ownPage(ctx context.Context, q JobQuery, cur cursor) (page ownPage, err error) {
	if cur.ownDone || (q.Site != "" && q.Site != b.cfg.Site) {
		return page, nil
	}
	err = b.ask(ctx, func(c *core) {
		for num := range c.ownNumbers(cur.num) {
			if n := len(page.jobs); n == q.Limit {
				page.rest = page.jobs[n-1].place
				return
			}
			state, payload := c.ownState(num)
			if (q.State == "" || q.State == state) && q.matches(payload) {
				j, _ := c.ownJob(num)
				page.jobs = append(page.jobs, listed{j, num})
			}
		}
	})
	return page, err
}

// ownNumbers yields the numbers of the jobs that only this broker knows, those
// below a number (0 = all), greatest first.
func (c *core) ownNumbers(below uint64) iter.Seq[uint64] {
	nums := slices.Clone(c.home.order)
	for num := range c.pubs.byJob {
		nums = append(nums, num)
	}
	slices.Sort(nums)
	if below > 0 {
		i, _ := slices.BinarySearch(nums, below)
		nums = nums[:i]
	}
	return func(yield func(uint64) bool) {
		for _, num := range slices.Backward(nums) {
			if !yield(num) {
				return
			}
		}
	}
}

// ownState is what a list filters by.
func (c *core) ownState(num uint64) (state string, payload []byte) {
	if h := c.home.jobs[num]; h != nil {
		return h.state().String(), h.Spec.Payload
	}
	return fsm.Queued.String(), c.pubs.find(num).spec.Payload
}

// federationPage reads the federation's jobs, and takes from own what has been
// published since own was read, or is not known to be published yet.
func (b *Broker) federationPage(q JobQuery, cur cursor, own *ownPage) (page []listed, next uint64) {
	f := fsm.JobFilter{Owner: q.Site, State: q.State}
	if len(q.Labels) > 0 || q.Name != "" {
		f.Match = q.matches
	}
	b.cfg.Replica.View(func(s *fsm.State) {
		own.jobs = slices.DeleteFunc(own.jobs, func(l listed) bool {
			_, known := s.Job(l.ID)
			return known
		})
		if cur.fedDone {
			return
		}
		var views []fsm.JobView
		views, next = s.Jobs(f, cur.seq, q.Limit)
		for i := range views {
			page = append(page, listed{b.jobOf(&views[i]), views[i].Seq})
		}
	})
	return page, next
}

// merge takes the newest of both lists.
func merge(fed []listed, mine ownPage, fedNext uint64, limit int, cur cursor) JobPage {
	page := JobPage{Items: []Job{}}
	f, o, own := 0, 0, mine.jobs
	for len(page.Items) < limit && (f < len(fed) || o < len(own)) {
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
