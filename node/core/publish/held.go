package publish

import (
	"cmp"
	"container/heap"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// A job of a user may have to wait for the user's turn (node/core/quotas decides): it is held. It is journaled and
// acknowledged like others, and sent once it is released. A record that holds such jobs stays until the state has all
// of them: which of them were sent is in memory alone, and after a crash the state tells.

// Held is why a job waits that is not its user's turn.
const Held = "held at this site until it is its user's turn: `cloudshare why` tells more"

// sharedRecord is a record of the journal whose jobs are published by several commands.
type sharedRecord struct {
	first uint64 // its key
	left  int    // jobs that the state does not have yet
}

// line is a user's held jobs, a heap of groups that each have one priority: the highest first, then the oldest.
type line []*publication

func (l line) Len() int { return len(l) }

func (l line) Less(i, k int) bool {
	a, b := &l[i].jobs[0].Spec, &l[k].jobs[0].Spec
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Num, b.Num)) < 0
}
func (l line) Swap(i, k int) { l[i], l[k] = l[k], l[i]; l[i].at, l[k].at = i, k }
func (l *line) Push(x any)   { p := x.(*publication); p.at = len(*l); *l = append(*l, p) }

func (l *line) Pop() any {
	last := len(*l) - 1
	p := (*l)[last]
	(*l)[last], *l = nil, (*l)[:last]
	return p
}

// goesWith reports whether two jobs may be in the same group.
func (j *Job) goesWith(other *Job) bool {
	return j.Held == other.Held &&
		(!j.Held || j.User == other.User && j.Spec.Priority == other.Spec.Priority)
}

// hold puts a group into its user's line.
func (b *Book) hold(p *publication) {
	l := b.lines[p.jobs[0].User]
	if l == nil {
		l = &line{}
		b.lines[p.jobs[0].User] = l
	}
	heap.Push(l, p)
}

// Release has the first held job of a user published; false: the user has none.
func (b *Book) Release(user string) bool {
	l := b.lines[user]
	if l == nil {
		return false
	}
	b.take((*l)[0], 0)
	return true
}

// ReleaseOldest has the held ones of the oldest jobs on their way published, looking at n of these.
func (b *Book) ReleaseOldest(n int) {
	var oldest []uint64
	for num := range b.nums.All() {
		if len(oldest) == n {
			break
		}
		oldest = append(oldest, num)
	}
	for _, num := range oldest {
		p := b.byJob[num]
		if i := p.index(num); p.jobs[i].Held {
			b.take(p, i)
		}
	}
}

// take takes a job out of a held group and has it sent, with the job before it if that is not sent either. It returns
// the group in which it is now.
func (b *Book) take(p *publication, i int) *publication {
	job := &p.jobs[i]
	b.countHeld(job, -job.bytes())
	job.Held = false
	job.Spec.Nice = b.released(job)
	return b.toSend(b.cut(p, i), p.shared)
}

// cut takes a job out of a held group, and leaves the others where they are.
func (b *Book) cut(p *publication, i int) []Job {
	p.bytes -= p.jobs[i].bytes()
	user, one, after := p.jobs[i].User, p.jobs[i:i+1], p.jobs[i+1:]
	p.jobs = p.jobs[:i]
	switch l := b.lines[user]; {
	case i > 0 && len(after) > 0:
		b.hold(b.split(p, after))
	case i > 0: // the rest stays where it is
	case len(after) > 0:
		p.jobs = after
		heap.Fix(l, p.at)
	default:
		if heap.Remove(l, p.at); l.Len() == 0 {
			delete(b.lines, user)
		}
	}
	return one
}

// SetPriority gives a job on its way another priority, which an answer that the state has given already does not know:
// see MayBePublished. The journal has it as it was. REQUIRES: the job is known.
func (b *Book) SetPriority(num uint64, priority int32) {
	j := b.Find(num)
	p := b.byJob[num]
	if p == nil || !j.Held || j.Spec.Priority == priority {
		j.Spec.Priority = priority
		return
	}
	one := b.cut(p, p.index(num))
	one[0].Spec.Priority = priority
	q := &publication{jobs: one, since: p.since, shared: p.shared, bytes: one[0].bytes()}
	b.byJob[num] = q
	b.hold(q)
}

// IsUnderWay reports whether a job was sent, and what became of that is not known. REQUIRES: the job is known.
func (b *Book) IsUnderWay(num uint64) bool {
	p := b.byJob[num]
	return p != nil && p.sent
}

// MayBePublished reports whether the state has, or may get, a job as it was before: it was sent, or an earlier run of
// the broker may have sent it, which is known of what is held. REQUIRES: the job is known.
func (b *Book) MayBePublished(num uint64) bool {
	p := b.byJob[num]
	if p == nil {
		return false
	}
	j := &p.jobs[p.index(num)]
	return p.sent || j.Recovered && !j.Held
}

// split makes a group of a held group's last jobs.
func (b *Book) split(p *publication, jobs []Job) *publication {
	q := &publication{jobs: jobs, since: p.since, shared: p.shared}
	for k := range jobs {
		b.byJob[jobs[k].Spec.Num] = q
		q.bytes += jobs[k].bytes()
	}
	p.bytes -= q.bytes
	return q
}

// toSend puts a job at the end of what is to be sent.
func (b *Book) toSend(one []Job, r *sharedRecord) *publication {
	num := one[0].Spec.Num
	if last := len(b.order) - 1; last >= 0 {
		// Both are parts of what was accepted together, so that one slice holds them.
		p := b.order[last]
		next := p.jobs[0].Spec.Num + uint64(len(p.jobs))
		if p.shared == r && !p.sent && p.after == 0 && len(p.jobs) < maxJobs && len(p.cancels) < turn.MaxBehind &&
			next == num {
			p.jobs, p.bytes = p.jobs[:len(p.jobs)+1], p.bytes+one[0].bytes()
			b.byJob[num] = p
			return p
		}
	}
	p := &publication{jobs: one, since: b.now.Wall, shared: r, bytes: one[0].bytes()}
	b.byJob[num] = p
	b.order = append(b.order, p)
	return p
}

// handleShared takes note of what the order has of a group whose record is shared. What it refused is asked again
// later: all of these jobs were promised.
func (b *Book) handleShared(p *publication, r command.Result, s turn.StateReader, fx *turn.Effects) {
	for from := 0; from < len(p.jobs); {
		to, refused := from, SubmitError(codeOf(r, from)) != nil
		for ; to < len(p.jobs) && (SubmitError(codeOf(r, to)) != nil) == refused; to++ {
			if !refused {
				b.answer(&p.jobs[to], codeOf(r, to), s, fx)
				p.shared.left--
			}
		}
		if refused {
			again := &publication{jobs: p.jobs[from:to:to], since: b.now.Wall, after: b.whenFull(), shared: p.shared}
			b.queue(again)
		}
		from = to
	}
	if p.shared.left == 0 {
		fx.Writes = append(fx.Writes, record.Tidy(record.BucketPublishing, record.Number(p.shared.first)))
	}
}

// HoldRecovered has the users' jobs wait again that an earlier life of the broker did not publish, as the state knows;
// userOf tells whose a job is. REQUIRES: this life has been registered, so that nothing of the earlier one can still be
// ordered.
func (b *Book) HoldRecovered(userOf func(num uint64) string, published func(num uint64) bool, fx *turn.Effects) {
	order := b.order
	b.order = nil
	for _, p := range order {
		if p.sent || !p.jobs[0].Recovered || p.shared != nil || len(p.cancels) > 0 {
			b.order = append(b.order, p)
			continue
		}
		for i := range p.jobs {
			j := &p.jobs[i]
			j.User = userOf(j.Spec.Num)
			j.Held = j.User != "" && !published(j.Spec.Num)
			b.countHeld(j, j.bytes())
		}
		b.holdParts(p, fx)
	}
}

// holdParts parts a group into what is held and what is sent.
func (b *Book) holdParts(p *publication, fx *turn.Effects) {
	shared := &sharedRecord{first: p.jobs[0].Spec.Num, left: len(p.jobs)}
	for rest := p.jobs; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].goesWith(&rest[n-1]) {
			n++
		}
		part := b.split(p, rest[:n])
		part.shared, part.after = shared, p.after
		if rest = rest[n:]; part.jobs[0].Held {
			b.hold(part)
			b.answerSite(part, Held, fx) // who repeated a request before the registration
		} else {
			b.order = append(b.order, part)
		}
	}
}
