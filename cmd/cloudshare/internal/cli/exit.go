package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// Exit codes of the contract.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitUnreachable = 3
	ExitNotFound    = 4
	ExitRefused     = 5
	ExitDiffers     = 6  // what was checked is not as it should be
	ExitNotProven   = 7  // it may be, and nothing proves it
	ExitFailed      = 10 // under --wait
	ExitCancelled   = 11
	ExitLost        = 12
	ExitTimeout     = 13 // wait --timeout
)

// exitCode is an error that knows the process's exit code. An empty err has
// been told already.
type exitCode struct {
	code int
	err  error
}

func (e *exitCode) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitCode) Unwrap() error { return e.err }

// Usage returns an error of what was typed or configured.
func Usage(format string, args ...any) error {
	return WithExit(ExitUsage, fmt.Errorf(format, args...))
}

// WithExit returns err with an exit code of its own. A nil err has been told already.
func WithExit(code int, err error) error { return &exitCode{code, err} }

// CodeOf returns the one table from errors to exit codes.
func CodeOf(err error) int {
	var known *exitCode
	var problem *client.Problem
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &problem):
		return problemCode(problem)
	case errors.Is(err, client.ErrUnreachable):
		return ExitUnreachable
	case errors.Is(err, client.ErrBadAddr):
		return ExitUsage
	}
	return ExitError
}

// badValues are the problems that lie in what was typed, whoever finds them: as usage
// they can be told apart from what another federation, or a later try, would accept.
var badValues = []string{"malformed", "invalid-job", "invalid-policy", "invalid-request", "invalid-parameter", "bad-cursor"}

// problemCode: a 503 about another site's broker is "unreachable" for the one
// who asks; everything else a broker refuses is "refused".
func problemCode(p *client.Problem) int {
	switch {
	case slices.Contains(badValues, strings.TrimPrefix(p.Type, wire.ProblemPrefix)):
		return ExitUsage
	case p.Status == http.StatusNotFound, p.Status == http.StatusGone:
		return ExitNotFound
	case strings.HasSuffix(p.Type, "-unreachable"):
		return ExitUnreachable
	case p.Status == http.StatusInternalServerError:
		return ExitError
	}
	return ExitRefused
}

// Explain words an error for a person, in one line, with what to do.
func Explain(err error) string {
	var problem *client.Problem
	switch {
	case errors.As(err, &problem):
		name := strings.TrimPrefix(problem.Type, wire.ProblemPrefix)
		return fmt.Sprintf("%s (%s)", problem.Error(), name)
	case errors.Is(err, client.ErrUnreachable):
		return err.Error() + "; start one with `cloudshare dev`, or name another with --addr"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return err.Error()
}

// EndCodes are the job states that are final, with their exit codes.
var EndCodes = map[string]int{
	"succeeded": ExitOK, "failed": ExitFailed, "cancelled": ExitCancelled, "lost": ExitLost,
}
