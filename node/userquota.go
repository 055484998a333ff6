package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/access"
)

// EveryUser stands for the users of a site that have no limits of their own.
const EveryUser = "*"

// CheckLimitsUser returns nil for whom limits may be set: a user, or EveryUser.
func CheckLimitsUser(name string) error {
	if name == EveryUser || access.ValidUser(name) {
		return nil
	}
	return fmt.Errorf("must be %s, or %s for all that have no limits of their own", access.UserForm, EveryUser)
}

// Quotas of a site's users: what jobs of one user that have not ended may be.
const (
	UserTasks    = "tasks"     // tasks that have not ended
	UserMilliCPU = "milli_cpu" // thousandths of cores that these need
	UserBytes    = "bytes"     // of these jobs' commands, environments and lists
	// UserJobsPerMinute is how many jobs are taken in a minute, whatever becomes of them.
	UserJobsPerMinute = "jobs_per_minute"
)

// UserHalfLife is after how long half of a user's use is forgotten, unless the configuration says otherwise. It says
// something from MinUserHalfLife, below which turns are of the moment, to MaxUserHalfLife.
const (
	UserHalfLife    = 7 * 24 * time.Hour
	MinUserHalfLife = time.Hour
	MaxUserHalfLife = 365 * 24 * time.Hour
)

// UserLimits are the quotas of one user of a site, 0 = no limit. They hold at this site only.
type UserLimits struct {
	Tasks    uint64 `json:"tasks"`
	MilliCPU uint64 `json:"milli_cpu"`
	Bytes    uint64 `json:"bytes"`
	// JobsPerMinute may all come at once.
	JobsPerMinute uint64 `json:"jobs_per_minute"`
	// Shares say how much of the site's turns the user gets in relation to others; 0 is 1.
	Shares uint64 `json:"shares"`
}

// UserLimitsChange is what an operator changes of a user's limits; nil stays.
type UserLimitsChange struct {
	Tasks, MilliCPU, Bytes, JobsPerMinute, Shares *uint64

	Clear bool // forget the user's own limits first: those of EveryUser hold again
}

// Apply returns the limits after the change, base being those before.
func (c *UserLimitsChange) Apply(base UserLimits) UserLimits {
	for _, f := range []struct{ to, from *uint64 }{
		{&base.Tasks, c.Tasks},
		{&base.MilliCPU, c.MilliCPU},
		{&base.Bytes, c.Bytes},
		{&base.JobsPerMinute, c.JobsPerMinute},
		{&base.Shares, c.Shares},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return base
}

// Where a user's limits are from.
const (
	LimitsByCommand       = "command"       // the operator has set them, and not cleared them
	LimitsByConfiguration = "configuration" // of the broker
	LimitsOfEverybody     = "everybody"     // those of EveryUser
	LimitsOfNobody        = "none"          // of EveryUser alone: it has none
)

// UserUse is what one user of a site uses, and may use.
type UserUse struct {
	User   string // or EveryUser, for the limits alone
	Limits UserLimits
	Own    bool   // the limits are the user's own, not those of EveryUser
	From   string // where the limits are from, LimitsBy…
	// Tasks, MilliCPU and Bytes are used of the quotas.
	Tasks, MilliCPU, Bytes uint64
	Held                   uint64 // tasks of these that wait at this site for the user's turn
	// CoreSeconds of running tasks, of which half are forgotten in each half-life.
	CoreSeconds uint64
}

// UserTotals are what the users of a site have together; no name is among them.
type UserTotals struct {
	Users, Jobs, HeldJobs int // users with jobs that have not ended, these, and which of these are held
	Tasks, HeldTasks      uint64
}

// UserQuotas are the kinds of quotas that may refuse a job.
var UserQuotas = []string{UserTasks, UserMilliCPU, UserBytes, UserJobsPerMinute}

// ErrUserQuota is what a *UserQuotaError wraps; ErrUsersFull says that too many users have limits of their own.
var (
	ErrUserQuota = errors.New("the user's quota is used up")
	ErrUsersFull = errors.New("too many users have limits of their own")
)

// UserQuotaError says by which quota of its user a job was refused.
type UserQuotaError struct {
	User string
	fsm.Use
	Need uint64 // what the job would use more
	// After is when there is room again, 0 = that is not known.
	After time.Duration
}

var userQuotaMeanings = map[string]string{
	UserTasks:    "tasks that have not ended",
	UserMilliCPU: "thousandths of cores for tasks that have not ended",
	UserBytes:    "bytes of jobs that have not ended",

	UserJobsPerMinute: "jobs in a minute",
}

// Error says it in one line, with what to do.
func (e *UserQuotaError) Error() string {
	remedy := "wait until jobs end or cancel some"
	switch {
	case e.After > 0:
		remedy = fmt.Sprintf("try again in %d s", e.RetrySeconds())
	case e.Never():
		remedy = "split the job, or ask the site's operator for more"
	}
	return fmt.Sprintf("user %s uses %d of %d %s, and this job takes %d more: %s (`cloudshare quota users` shows all)",
		e.User, e.Used, e.Limit, userQuotaMeanings[e.Quota], e.Need, remedy)
}

// Never reports whether the job is beyond the quota even if the user has no other.
func (e *UserQuotaError) Never() bool { return e.Need > e.Limit }

// RetrySeconds returns after how many seconds to try again.
func (e *UserQuotaError) RetrySeconds() int {
	if e.After > 0 {
		return int((e.After + time.Second - 1) / time.Second)
	}
	return 5
}

// Unwrap has errors.Is find ErrUserQuota.
func (e *UserQuotaError) Unwrap() error { return ErrUserQuota }
