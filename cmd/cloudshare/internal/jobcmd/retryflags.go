package jobcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/wire"
)

// The flags of when a task is tried again, and how many run at a time.
const (
	flagBackoff    = "retry-backoff"
	flagBackoffMax = "retry-backoff-max"
	flagRetryOn    = "retry-on"
	flagNoRetryOn  = "no-retry-on"
	flagParallel   = "parallel"
)

func retryFlags(f *pflag.FlagSet) {
	f.String(flagBackoff, "", "hold a task after its first failure for so `LONG`, e.g. 10s, and twice as long after each further one")
	f.String(flagBackoffMax, "", "but for `LONG` at most (default 10m)")
	f.StringSlice(flagRetryOn, nil, "try again after these exit `CODES` only, e.g. 75,100-110")
	f.StringSlice(flagNoRetryOn, nil, "do not try again after these exit `CODES`, e.g. 2,64-78")
	f.Int64(flagParallel, 0, "run at most so many tasks of the job at a time (default: as many as there is room for)")
}

// retryWords says when a task is tried again, "" = always, at once.
func retryWords(r *wire.SpecRetry) string {
	words := ""
	if r.Backoff != "" {
		words = fmt.Sprintf(", after %s, doubling up to %s", r.Backoff, r.BackoffMax)
	}
	if len(r.OnlyOn) > 0 {
		words += ", only on exit " + strings.Join(r.OnlyOn, ", ")
	}
	if len(r.NotOn) > 0 {
		words += ", not on exit " + strings.Join(r.NotOn, ", ")
	}
	return words
}
