package main

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
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitNotFound    = 4
	exitRefused     = 5
	exitFailed      = 10 // under --wait
	exitCancelled   = 11
	exitLost        = 12
	exitTimeout     = 13 // wait --timeout
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

// usage is an error of what was typed or configured.
func usage(format string, args ...any) error {
	return &exitCode{exitUsage, fmt.Errorf(format, args...)}
}

// codeOf is the one table from errors to exit codes.
func codeOf(err error) int {
	var known *exitCode
	var problem *client.Problem
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &problem):
		return problemCode(problem)
	case errors.Is(err, client.ErrUnreachable):
		return exitUnreachable
	case errors.Is(err, client.ErrBadAddr):
		return exitUsage
	}
	return exitError
}

// badValues are the problems that lie in what was typed, whoever finds them: as usage
// they can be told apart from what another federation, or a later try, would accept.
var badValues = []string{"malformed", "invalid-job", "invalid-policy", "invalid-request", "invalid-parameter", "bad-cursor"}

// problemCode: a 503 about another site's broker is "unreachable" for the one
// who asks; everything else a broker refuses is "refused".
func problemCode(p *client.Problem) int {
	switch {
	case slices.Contains(badValues, strings.TrimPrefix(p.Type, wire.ProblemPrefix)):
		return exitUsage
	case p.Status == http.StatusNotFound:
		return exitNotFound
	case strings.HasSuffix(p.Type, "-unreachable"):
		return exitUnreachable
	case p.Status == http.StatusInternalServerError:
		return exitError
	}
	return exitRefused
}

// explain words an error for a person, in one line, with what to do.
func explain(err error) string {
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
