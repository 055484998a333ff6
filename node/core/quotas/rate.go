package quotas

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// rate bounds how many jobs a user submits in a minute. It is the generic cell rate algorithm: one moment tells
// all that a bucket of tokens would, and a user that submits nothing costs nothing.
type rate struct {
	// paid is until when what was submitted lasts at the user's limit, by the clock of Admit; a minute ahead of now
	// at most.
	paid int64
}

// admit says why one more job cannot be taken at a moment in nanoseconds, or nil; perMinute 0 = no limit.
func (r *rate) admit(user string, perMinute uint64, now int64) error {
	cost := costOf(perMinute)
	wait := max(r.paid, now) + cost - now - int64(time.Minute)
	if cost == 0 || wait <= 0 {
		return nil
	}
	used := min(uint64((r.paid-now+cost-1)/cost), perMinute) // a job counts until all of it is paid
	return &node.UserQuotaError{
		User: user, Use: fsm.Use{Quota: node.UserJobsPerMinute, Used: used, Limit: perMinute},
		Need: 1, After: time.Duration(wait),
	}
}

func (r *rate) spend(perMinute uint64, now int64) { r.paid = max(r.paid, now) + costOf(perMinute) }

// costOf returns how long one job lasts.
func costOf(perMinute uint64) int64 {
	if perMinute == 0 {
		return 0
	}
	return int64(uint64(time.Minute) / perMinute)
}
