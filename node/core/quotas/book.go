// Package quotas counts what each user of a site has of open jobs, refuses what is beyond the user's quotas, and
// measures what the users' tasks run. Jobs of no user are the site's own: they are neither counted nor limited. It has
// no clock and reads no state: both are handed in. What it knows of users never leaves the site.
package quotas

import (
	"cmp"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// maxUsers bounds the users that have limits of their own.
const maxUsers = 10_000

// Claim is what a job takes of its user's quotas.
type Claim struct {
	Tasks    uint64 // not ended
	MilliCPU uint64 // of one task
	Bytes    uint64
	// Gated: its tasks are held in the federation until they are released one by one.
	Gated bool
}

// job is an open job of a user.
type job struct {
	num  uint64
	user *user
	Claim
	// looked is when it was looked at last, and missed since when nobody knows it, −1 = somebody does; both by the
	// clock of Look.
	looked, missed int64
	queued, gated  uint64 // tasks that wait and that are held in the federation, when it was looked at last
	nice           uint32
}

// user has open jobs, limits of its own, or a use that is not forgotten.
type user struct {
	name                   string
	limits                 *node.UserLimits // set by command; nil: none
	configured             *node.UserLimits // nil: none
	jobs                   int
	tasks, milliCPU, bytes uint64
	share
	use       use
	rate      rate
	unwritten bool // the journal does not have it so
}

// Book holds the users of one site. One goroutine has it, the core's.
type Book struct {
	users map[string]*user
	every every
	// jobs are the open ones in any order, next the one to be looked at next.
	jobs []*job
	next int
	window
	// spent is when the last job was taken.
	spent int64
	// stepMs is after how long a part of the users' use is forgotten.
	stepMs int64
}

// NewBook returns a book in which nobody has a limit.
func NewBook() Book { return Book{users: map[string]*user{}, stepMs: stepOf(node.UserHalfLife)} }

func (b *Book) user(name string) *user {
	u := b.users[name]
	if u == nil {
		u = &user{name: name, share: share{at: -1}}
		b.users[name] = u
	}
	return u
}

func (b *Book) limitsOf(u *user) node.UserLimits {
	if u != nil && u.limits != nil {
		return *u.limits
	}
	if u != nil && u.configured != nil {
		return *u.configured
	}
	l, _ := b.every.limits()
	return l
}

// Admit says why a job of a user cannot be taken, or nil; now is in nanoseconds, by a clock that nobody sets.
func (b *Book) Admit(name string, c Claim, now int64) error {
	if name == "" {
		return nil
	}
	u := b.users[name]
	l := b.limitsOf(u)
	if u == nil {
		u = &user{}
	}
	for _, q := range []struct {
		quota             string
		used, limit, need uint64
	}{
		{node.UserTasks, u.tasks, l.Tasks, c.Tasks},
		{node.UserMilliCPU, u.milliCPU, l.MilliCPU, c.Tasks * c.MilliCPU},
		{node.UserBytes, u.bytes, l.Bytes, c.Bytes},
	} {
		if q.limit > 0 && (q.need > q.limit || q.used > q.limit-q.need) {
			return &node.UserQuotaError{
				User: name, Use: fsm.Use{Quota: q.quota, Used: q.used, Limit: q.limit}, Need: q.need,
			}
		}
	}
	return u.rate.admit(name, l.JobsPerMinute, now)
}

// Spend counts a job that was taken for the rate of its user.
func (b *Book) Spend(name string, now int64) {
	if name == "" {
		return
	}
	b.spent = now
	if u := b.user(name); b.limitsOf(u).JobsPerMinute > 0 {
		u.rate.spend(b.limitsOf(u).JobsPerMinute, now)
	}
}

// Accept counts a job that was taken and need not wait for its user's turn, with a nice value that NiceOf gave; now is
// in milliseconds, by the clock of Look.
func (b *Book) Accept(num uint64, name string, c Claim, nice uint32, now int64) {
	if name == "" || c.Tasks == 0 {
		return
	}
	u := b.user(name)
	u.add(c)
	b.follow(num, u, c, nice, now)
}

// add counts a job.
func (u *user) add(c Claim) {
	u.jobs++
	u.tasks += c.Tasks
	u.milliCPU += c.Tasks * c.MilliCPU
	u.bytes += c.Bytes
}

// follow has a job looked at in its turn.
func (b *Book) follow(num uint64, u *user, c Claim, nice uint32, now int64) {
	j := &job{num: num, user: u, Claim: c, looked: now, missed: -1, nice: nice}
	b.jobs = append(b.jobs, j)
	u.nice = nice
	if c.Gated {
		j.setGated(c.Tasks)
	} else {
		b.setQueued(j, c.Tasks)
	}
	b.changed(u)
}

// Restart forgets the open jobs: those that there are will be accepted again.
func (b *Book) Restart() {
	b.jobs, b.next = nil, 0
	for _, u := range b.users {
		u.jobs, u.tasks, u.milliCPU, u.bytes = 0, 0, 0, 0
		u.share = share{at: -1}
	}
	b.window = window{milliCPU: b.window.milliCPU}
}

// Set changes a user's limits, or those of everybody.
func (b *Book) Set(name string, c *node.UserLimitsChange) error {
	if name == node.EveryUser {
		b.every.set(c)
		for _, u := range b.users {
			b.changed(u)
		}
		return nil
	}
	if b.users[name] == nil && len(b.users) >= maxUsers {
		b.tidy()
		if len(b.users) >= maxUsers {
			return node.ErrUsersFull
		}
	}
	u := b.user(name)
	if c.Clear {
		u.limits = nil
	}
	if *c != (node.UserLimitsChange{Clear: c.Clear}) {
		l := c.Apply(b.limitsOf(u))
		u.limits = &l
	}
	u.unwritten = true
	b.changed(u)
	return nil
}

// tidy drops users of whom there is nothing to know.
func (b *Book) tidy() {
	for name, u := range b.users {
		idle := u.jobs == 0 && u.use.milliSeconds == 0 && !u.unwritten && u.rate.paid <= b.spent
		if idle && u.limits == nil && u.configured == nil {
			delete(b.users, name)
		}
	}
}

// Totals returns what the users have together.
func (b *Book) Totals() (t node.UserTotals) {
	for _, u := range b.users {
		if u.jobs > 0 {
			t.Users++
		}
		t.Jobs += u.jobs
		t.HeldJobs += u.heldJobs
		t.Tasks += u.tasks
		t.HeldTasks += u.held
	}
	return t
}

// List shows everybody's limits and all users, by name; wall is unix time in milliseconds.
func (b *Book) List(wall int64) []node.UserUse {
	b.Decay(wall)
	out := make([]node.UserUse, 0, len(b.users)+1)
	all, from := b.every.limits()
	out = append(out, node.UserUse{User: node.EveryUser, Limits: all, From: from})
	for name, u := range b.users {
		out = append(out, node.UserUse{
			User: name, Limits: b.limitsOf(u), From: u.from(), Held: u.held,
			Own:   u.limits != nil || u.configured != nil,
			Tasks: u.tasks, MilliCPU: u.milliCPU, Bytes: u.bytes, CoreSeconds: u.use.milliSeconds / 1000,
		})
	}
	slices.SortFunc(out, func(x, y node.UserUse) int { return cmp.Compare(x.User, y.User) })
	return out
}
