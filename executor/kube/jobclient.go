package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cloudshare/cloudshare/executor"
)

// jobClient asks the API server for what an attempt needs: its Job, made once, and the way
// past its pod's gate.
type jobClient struct {
	cfg   *Config
	api   *api
	works *workSet
	specs *jobBuilder
	reach *reach
}

// refusal: the API server said no, and nothing was made.
type refusal struct {
	kind error // executor.ErrBusy, ErrUnfit, or nil: the site's own trouble
	said error
}

// Error implements error.
func (r *refusal) Error() string {
	if r.kind == nil {
		return "the API server refuses its Job: " + r.words()
	}
	return r.kind.Error() + ": the API server refuses its Job: " + r.words()
}

// words are the API server's, without what the Job would run. What it does not find is the namespace.
func (r *refusal) words() string {
	if apierrors.IsNotFound(r.said) {
		return inLine(r.said.Error())
	}
	return withoutNames(r.said.Error())
}

// Unwrap returns both.
func (r *refusal) Unwrap() []error { return []error{r.kind, r.said} }

// errForeign: a Job of that name is somebody else's.
var errForeign = errors.New("a Job of its name is there that is not its own")

// hasPod asks the API server itself: the watch of pods may be behind that of Jobs. It asks
// for any pod of the Job, or for the one of that name.
func (c *jobClient) hasPod(ctx context.Context, w *work, name string) (bool, error) {
	there, err := c.api.hasPod(ctx, w.job, name)
	if err = c.reach.answered(err); err != nil {
		return false, fmt.Errorf("look for the pod of Job %s: %w", w.job, err)
	}
	return there, nil
}

// complaint returns what Kubernetes' controllers say of a Job without a pod, such as
// that a quota is exceeded; "" = nothing.
func (c *jobClient) complaint(ctx context.Context, w *work) string {
	list, err := c.api.warnings(ctx, "Job", w.job)
	if err != nil || len(list) == 0 {
		return ""
	}
	return withoutNames(list[len(list)-1].Message)
}

// isUnclear notes why it is not known whether a Job was made.
func (c *jobClient) isUnclear(w *work, err error) {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	w.unclear = explain(err)
}

// create makes the attempt's Job, once. An error that is not a *refusal does not
// say whether it was made.
func (c *jobClient) create(ctx context.Context, w *work) error {
	name, _ := nodeOf(w.Task.Machine)
	j, err := c.specs.job(w, name)
	if err != nil {
		return &refusal{executor.ErrUnfit, err}
	}
	if bound, ok := c.specs.bound(&w.Task, w.fetching()); w.Task.Fence != 0 && !w.watched &&
		(!ok || executor.Boottime()+int64(bound) > w.Task.Fence) {
		return executor.ErrLate
	}
	err = c.api.create(ctx, j)
	if apierrors.IsAlreadyExists(err) {
		found, ferr := c.api.job(ctx, w.job)
		switch {
		case ferr != nil:
			return fmt.Errorf("look for Job %s: %w", w.job, ferr)
		case found.Labels[labelHome] != c.works.home || found.Annotations[noteName] != w.Name:
			return &refusal{executor.ErrUnfit, errForeign}
		}
		return nil
	}
	_ = c.reach.answered(err)
	if n := j.Size(); n > storable && (apierrors.IsInvalid(err) || apierrors.IsInternalError(err)) {
		// What the server says then has nothing to do with it.
		err = fmt.Errorf("command and environment are too large for a cluster: %d bytes as it keeps them, where $ counts twice; put data into a file: %w", n, err)
	}
	return refused(err)
}

// storable is about what the store of a cluster takes of one object by default, in bytes.
const storable = 1500 << 10

// refused tells what the API server refuses for certain from what it may have
// done.
func refused(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &refusal{executor.ErrUnfit, err}
	case isQuota(err), apierrors.IsTooManyRequests(err):
		return &refusal{executor.ErrBusy, err}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
		return &refusal{nil, err}
	}
	return err
}
