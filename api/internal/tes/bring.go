package tes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// importFor is for how long the inputs of one task may be brought, from when its turn came.
	importFor = 12 * time.Hour
	// importLook is how often it is asked whether what stands behind URLs has come.
	importLook = time.Second
	// storePatience is for how long a store or a disk is asked again that is full or busy, hostPatience a host that
	// does not answer as it should. importPause is between the first two tries; it doubles to maxImportPause.
	storePatience  = 10 * time.Minute
	hostPatience   = time.Minute
	importPause    = time.Second
	maxImportPause = time.Minute
)

// Reasons for which an import ends before it is done.
var (
	errLate  = fmt.Errorf("the inputs were not here within %s", importFor)
	errEnded = errors.New("the task has ended")
)

// bringInputs brings the inputs of a job that is held for them, or ends the job with the reason. Without either it
// returns when the broker stops, or when the job has ended otherwise.
func (t *Tasks) bringInputs(ctx context.Context, id command.JobID, user string) {
	ctx = node.WithAsker(ctx, node.Asker{User: user, Operator: true})
	late, cancel := context.WithTimeoutCause(ctx, importFor, errLate)
	defer cancel()
	err := t.bringUntilEnd(late, id, user)
	if err == nil || errors.Is(err, node.ErrEnded) || errors.Is(err, errEnded) || ctx.Err() != nil {
		return
	}
	p := problem.Of(err)
	if p.Status == http.StatusInternalServerError && !errors.Is(err, errLate) {
		t.Log.Error().Err(err).Stringer("job", id).Msg("the inputs of a task could not be brought")
	}
	why := "its inputs could not be brought: " + reasonOf(err, p)
	if err = t.Broker.NotBrought(ctx, id, why); err != nil && !errors.Is(err, node.ErrEnded) && ctx.Err() == nil {
		t.Log.Warn().Err(err).Stringer("job", id).Msg("a task without inputs has not ended: trying again within a minute")
	}
}

// reasonOf words why inputs could not be brought, as far as it is the user's to know.
func reasonOf(err error, p *problem.Problem) string {
	var wrong *badTask
	switch {
	case errors.As(err, &wrong):
		return wrong.Error()
	case errors.Is(err, errLate):
		return errLate.Error()
	}
	return sentence(&p.Problem)
}

// bringUntilEnd tries until the inputs are here; its error is why they will not be.
func (t *Tasks) bringUntilEnd(ctx context.Context, id command.JobID, user string) error {
	if _, err := t.Broker.Attached(ctx, id); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-t.Broker.AttachedEnded(id):
			cancel(errEnded)
		case <-ctx.Done():
		}
	})
	return keepTrying(ctx, func() error { return t.tryToBring(ctx, id, user) }, t.patience)
}

// keepTrying tries until it has succeeded, or has failed for as long as patience says after the first failure: what
// took hours before does not count.
func keepTrying(ctx context.Context, try func() error, patience func(error) time.Duration) error {
	var failed time.Time
	for pause := importPause; ; pause = min(2*pause, maxImportPause) {
		err := try()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && failed.IsZero() {
			failed = time.Now()
		}
		if err == nil || time.Since(failed) >= patience(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// patience returns for how long inputs are tried to be brought that failed so.
func (t *Tasks) patience(err error) time.Duration {
	for _, may := range []error{node.ErrStorageFull, node.ErrNotReady, node.ErrFull, node.ErrStale, node.ErrStopping} {
		if errors.Is(err, may) {
			return storePatience
		}
	}
	if errors.Is(err, t.HostFailed) {
		return hostPatience
	}
	return 0
}

// tryToBring brings a job's inputs once, by the document that is kept of its task, and has it run.
func (t *Tasks) tryToBring(ctx context.Context, id command.JobID, user string) error {
	var p *plan
	err := t.turns.read(ctx, MaxBody, func() (rerr error) {
		p, rerr = t.planOf(ctx, id, user)
		return rerr
	})
	if err != nil {
		return err
	}
	inputs, err := t.bringer(user).store(ctx, p)
	if err != nil {
		return err
	}
	spec, err := p.spec(inputs)
	if err != nil {
		return err
	}
	if err = t.await(ctx, &spec); err != nil {
		return err
	}
	return t.Broker.Brought(ctx, id, spec)
}

// planOf reads the plan of a task again. The user's roots are those of now.
func (t *Tasks) planOf(ctx context.Context, id command.JobID, user string) (*plan, error) {
	a, err := t.Broker.AttachedDocument(ctx, id)
	if err != nil {
		return nil, err
	}
	doc := kept{}
	if err = json.Unmarshal(a.Document, &doc); err != nil {
		return nil, fmt.Errorf("read the task of job %s: %w", id, err)
	}
	return translate(doc.Task, user, t.Roots)
}

// await waits until what stands behind the URLs of a job has come, or does not.
func (t *Tasks) await(ctx context.Context, spec *jobspec.Spec) error {
	look := time.NewTicker(importLook)
	defer look.Stop()
	for {
		err := t.Resolve(ctx, spec)
		if err == nil || !isUnderWay(err) {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
