package broker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/sched"
)

// Least retention of ended jobs: whoever waits for a job must be able to see its end.
const (
	leastRetainMs   = 60_000
	leastRetainJobs = 1000
)

// checkParams refuses what a running federation cannot use.
func checkParams(now, p command.Params) error {
	if _, err := sched.New(p.Policy, sched.Partial); err != nil {
		return &node.ParamError{Field: "policy", Value: strconv.Quote(p.Policy), Why: "is unknown: want one of " + livePolicies()}
	}
	if p.Policy == sched.Shapley {
		return &node.ParamError{Field: "policy", Value: strconv.Quote(p.Policy), Why: "is for the simulator, each entry would cost 2ᴺ virtual queues: choose CE, which is about as fair"}
	}
	for _, fixed := range []struct {
		field    string
		now, got int64
	}{{"lease_ms", now.LeaseMs, p.LeaseMs}, {"margin_ms", now.MarginMs, p.MarginMs}, {"quantum_ms", now.QuantumMs, p.QuantumMs}} {
		if fixed.now != fixed.got {
			return paramError(fixed.field, fixed.got, fmt.Sprintf("is fixed since the federation was founded: it is %d", fixed.now))
		}
	}
	var bound *command.BoundError
	switch err := p.Validate(); {
	case errors.As(err, &bound):
		return paramError(bound.Field, bound.Value, fmt.Sprintf("must be from %d to %d", bound.Low, bound.High))
	case err != nil:
		return fmt.Errorf("%w: %w", node.ErrBadParams, err)
	case p.RetainMs < leastRetainMs:
		return paramError("retain_ms", p.RetainMs, fmt.Sprintf("must be at least %d, or nobody could see how a job ended", leastRetainMs))
	case p.RetainJobs < leastRetainJobs:
		return paramError("retain_jobs", p.RetainJobs, fmt.Sprintf("must be at least %d, or nobody could see how a job ended", leastRetainJobs))
	}
	return nil
}

// livePolicies lists what a federation may be set to.
func livePolicies() string { return strings.Join(append(sched.Names(), sched.Alone, sched.CE), ", ") }

func paramError(field string, v int64, why string) error {
	return &node.ParamError{Field: field, Value: strconv.FormatInt(v, 10), Why: why}
}
