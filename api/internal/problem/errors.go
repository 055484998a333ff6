package problem

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/access"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/imports"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/files/uploads"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Table is the one place where errors become statuses.
var Table = []struct {
	Err         error
	status      int
	name, title string
	retryAfter  int // seconds
}{
	// Of files: they may stand in wider words of the broker, and say more.
	{node.ErrNoFiles, http.StatusServiceUnavailable, "files-unavailable", "This broker keeps no files", 0},
	{node.ErrResultsGone, http.StatusGone, "results-gone", "The results are gone", 0},
	{store.ErrUnknown, http.StatusUnprocessableEntity, UnknownBlob, "The blob is not in the store", 0},
	{store.ErrDamaged, http.StatusGone, "blob-damaged", "The blob is damaged", 0},
	{store.ErrWrongHash, http.StatusUnprocessableEntity, WrongHash, "The bytes have another hash", 0},
	{store.ErrTooLarge, http.StatusRequestEntityTooLarge, "too-large", "The file is too large", 0},
	{store.ErrFull, http.StatusServiceUnavailable, "store-full", "The site's store of files is full", 60},
	{store.ErrBusy, http.StatusServiceUnavailable, "store-busy", "The store of files is busy", 1},
	{files.ErrSize, http.StatusRequestEntityTooLarge, "too-large", "The file is too large", 0},
	{files.ErrHash, http.StatusBadRequest, "invalid-parameter", "A parameter is not valid", 0},
	{uploads.ErrUnknown, http.StatusNotFound, "not-found", "No such upload", 0},
	{uploads.ErrBusy, http.StatusLocked, "upload-busy", "Another request writes the upload", 1},
	{uploads.ErrTooMany, http.StatusTooManyRequests, "too-many-uploads", "Too many uploads are unfinished", 60},
	{uploads.ErrFull, http.StatusServiceUnavailable, "store-full", "The site's store of files is full", 60},
	{imports.ErrRefused, http.StatusUnprocessableEntity, "import-refused", "The URL is not fetched", 0},
	{imports.ErrFailed, http.StatusUnprocessableEntity, "import-refused", "The URL could not be fetched", 0},
	{imports.ErrClosed, http.StatusServiceUnavailable, "stopping", "The broker is stopping", 5},
	{exports.ErrRefused, http.StatusUnprocessableEntity, "path-refused", "The path is refused", 0},
	{node.ErrAttachedFull, http.StatusServiceUnavailable, "too-many-tasks", "Too many tasks have not ended", 5},
	{node.ErrNoticeRefused, http.StatusUnprocessableEntity, "notify-refused", "The job's notify is refused", 0},
	{node.ErrBadCursor, http.StatusBadRequest, "bad-cursor", "The cursor is not valid here", 0},
	{command.ErrBadID, http.StatusNotFound, "not-found", "No such job", 0},
	{node.ErrOutputGone, http.StatusNotFound, OutputGone, "The output is gone", 0},
	{node.ErrNotOwner, http.StatusForbidden, "not-owner", "The job is somebody else's", 0},
	{node.ErrNotFound, http.StatusNotFound, "not-found", "Not found", 0},
	{node.ErrOutputDamaged, http.StatusGone, OutputDamaged, "The output is damaged", 0},
	{node.ErrOutputUnreadable, http.StatusServiceUnavailable, OutputUnreadable, "The output cannot be read now", 10},
	{access.ErrUnknown, http.StatusNotFound, "not-found", "No such token", 0},
	{access.ErrExpired, http.StatusNotFound, "not-found", "No such token", 0},
	{access.ErrInvalid, http.StatusUnprocessableEntity, "invalid-request", "The request is not valid", 0},
	{access.ErrFull, http.StatusTooManyRequests, "too-many-tokens", "There are too many tokens", 0},
	{node.ErrEnded, http.StatusConflict, "already-ended", "The job has ended", 0},
	{node.ErrNothing, http.StatusConflict, "nothing-to-run", "There is nothing to run again", 0},
	{node.ErrScattered, http.StatusConflict, "scattered", "The job cannot be held", 0},
	{node.ErrLeaving, http.StatusConflict, "leaving", "The site is leaving", 0},
	{node.ErrKeyReused, http.StatusUnprocessableEntity, "key-reused", "The idempotency key belongs to another job", 0},
	{node.ErrUnfit, http.StatusUnprocessableEntity, "unfit", "No present site could run it", 0},
	{node.ErrBadParams, http.StatusUnprocessableEntity, "invalid-policy", "The policy is not valid", 0},
	{node.ErrUsersFull, http.StatusTooManyRequests, "too-many-users", "Too many users have limits of their own", 0},
	{node.ErrFull, http.StatusTooManyRequests, "queue-full", "The queue is full", 5},
	{node.ErrKeysFull, http.StatusServiceUnavailable, "keys-full", "Too many idempotency keys are held", 60},
	{node.ErrStorageFull, http.StatusServiceUnavailable, "storage-full", "The broker's disk is full", 10},
	{node.ErrStale, http.StatusServiceUnavailable, "stale", "The broker's state is too old", 2},
	{node.ErrNoQuorum, http.StatusServiceUnavailable, "no-quorum", "The federation has no quorum now", 2},
	{node.ErrNotReady, http.StatusServiceUnavailable, "not-ready", "The broker is not ready", 1},
	{node.ErrStopping, http.StatusServiceUnavailable, "stopping", "The broker is stopping", 5},
	{node.ErrUnreachable, http.StatusServiceUnavailable, "site-unreachable", "A site cannot be reached", 5},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", "It took too long", 2},
	{context.Canceled, http.StatusServiceUnavailable, "cancelled", "The request was abandoned", 1},
}

// remedies say what to do where the error does not.
var remedies = map[string]string{
	"store-full":        "; files that no job names go a day after they were sent (data.keep_unnamed): send it later, or ask the site's operator for more room",
	"files-unavailable": "; its operator gives it room for them",
}

// Told returns a problem as another broker words it, or nil if its status or type is not
// that of an error: another broker must not choose any other status of this one's answer.
func Told(p *wire.Problem) *Problem {
	if p.Status < http.StatusBadRequest || p.Status > 599 || !strings.HasPrefix(p.Type, wire.ProblemPrefix) {
		return nil
	}
	told := *p
	for _, text := range []*string{&told.Type, &told.Title, &told.Detail, &told.Field, &told.Value, &told.Quota} {
		*text = OneLine(*text)
	}
	return &Problem{Problem: told}
}

// Of turns any error into a problem. An error that is in no table is
// this broker's fault: its text goes to the log, not to the client.
func Of(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var spec *jobspec.SpecError
	if errors.As(err, &spec) {
		return specProblem(spec)
	}
	var elsewhere *node.ElsewhereError
	if errors.As(err, &elsewhere) {
		return Unreachable(elsewhere, "its address is not known")
	}
	var quota *node.QuotaError
	if errors.As(err, &quota) {
		return quotaProblem(quota)
	}
	var user *node.UserQuotaError
	if errors.As(err, &user) {
		return userQuotaProblem(user)
	}
	var refused *node.RosterError
	if errors.As(err, &refused) {
		return rosterProblem(refused)
	}
	var input *node.InputError
	if errors.As(err, &input) {
		return inputProblem(input, err)
	}
	var choice *node.MotionChoiceError
	if errors.As(err, &choice) {
		return New(http.StatusConflict, "several-motions", "Several motions are about the site", OneLine(err.Error()))
	}
	for _, row := range Table {
		if errors.Is(err, row.Err) {
			p = New(row.status, row.name, row.title, OneLine(err.Error()))
			p.RetryAfter = row.retryAfter
			p.Detail += remedies[row.name]
			var param *node.ParamError
			if errors.As(err, &param) {
				p.Field, p.Value = param.Field, OneLine(param.Value)
			}
			return p
		}
	}
	return New(http.StatusInternalServerError, "internal", "The broker failed", "the reason is in its log")
}

// Logged is Of, and keeps an unexpected error's text for the log.
func Logged(log zerolog.Logger, err error) *Problem {
	p := Of(err)
	if p.Status == http.StatusInternalServerError {
		log.Error().Err(err).Msg("request failed")
	}
	return p
}

func specProblem(e *jobspec.SpecError) *Problem {
	p := New(http.StatusUnprocessableEntity, "invalid-job", "The job is not valid", e.Error())
	if e.Malformed {
		p = New(http.StatusBadRequest, "malformed", "The body is not a JSON document", e.Error())
	}
	p.Field, p.Value = e.Field, e.Value
	return p
}

// inputProblem tells which input it is, and whether to send its bytes may help.
func inputProblem(e *node.InputError, err error) *Problem {
	name, title := "invalid-job", "The job is not valid"
	if e.Missing {
		name, title = UnknownBlob, "An input is not in the store"
	}
	p := New(http.StatusUnprocessableEntity, name, title, OneLine(err.Error()))
	p.Field = OneLine(e.Field)
	return p
}

// quotaProblem tells which quota it was, and of what.
func quotaProblem(e *node.QuotaError) *Problem {
	p := New(http.StatusTooManyRequests, "quota", "The site's quota is used up", OneLine(e.Error()))
	p.Quota, p.Used, p.Limit, p.Need, p.RetryAfter = e.Quota, &e.Used, &e.Limit, &e.Need, 5
	return p
}

// userQuotaProblem tells which quota of a user it was: 403 if the job can never be taken, else 429.
func userQuotaProblem(e *node.UserQuotaError) *Problem {
	p := New(http.StatusTooManyRequests, "quota-exceeded", "The user's quota is used up", OneLine(e.Error()))
	p.Quota, p.Used, p.Limit, p.Need, p.RetryAfter = e.Quota, &e.Used, &e.Limit, &e.Need, e.RetrySeconds()
	if e.Never() {
		p.Status, p.RetryAfter = http.StatusForbidden, 0
	}
	return p
}

// Unreachable returns "owner-unreachable" or "executor-unreachable".
func Unreachable(e *node.ElsewhereError, why string) *Problem {
	role := e.Role
	if role != "executor" {
		role = "owner"
	}
	p := New(http.StatusServiceUnavailable, role+"-unreachable", "The "+role+"'s site cannot be reached",
		e.Site+": "+OneLine(why)+"; ask again when it is back")
	p.RetryAfter = 5
	return p
}
