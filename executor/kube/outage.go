package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// calls is the name of the trouble that single calls have.
const calls = "calls"

// probeEach is how often an API that did not answer a call is asked whether it is
// back. Watches come back by themselves.
const probeEach = time.Second

// reach is whether the API server serves us.
type reach struct {
	api      *api
	life     *life
	log      zerolog.Logger
	works    *workSet
	isSynced func() bool // everything was listed once
	withdraw func()      // the offer is nothing. REQUIRES: workSet.mu held
	changed  func()      // the offer may be another

	// The rest is guarded by workSet.mu.

	trouble map[string]error // by what does not work
	probing bool             // the API is being asked whether it is back
	looked  chan struct{}    // closed once the cluster was asked for the first time
}

// away says why nothing can be started, nil = it can. REQUIRES: workSet.mu held.
func (r *reach) away() error {
	for _, kind := range []string{calls, "nodes", "pods", "jobs"} {
		if err := r.trouble[kind]; err != nil {
			return err
		}
	}
	if !r.isSynced() {
		return errors.New("the API server has not answered yet")
	}
	return nil
}

// heard notes how a watch fares.
func (r *reach) heard(kind string, err error) {
	if r.life.ctx.Err() != nil {
		return
	}
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsTimeout(err),
		apierrors.IsTooManyRequests(err):
		return // it is asked again at once
	case err != nil:
		err = fmt.Errorf("%s cannot be watched: %s", kind, explain(err))
	}
	r.works.mu.Lock()
	was := r.away()
	r.trouble[kind] = err
	if err == nil {
		r.trouble[calls] = nil
	} else {
		close1(r.looked)
	}
	r.turned(was)
	r.works.mu.Unlock()
}

// answered notes how a call fared, and returns its error.
func (r *reach) answered(err error) error {
	silent := err != nil && (isSilence(err) || apierrors.IsUnauthorized(err))
	r.works.mu.Lock()
	defer r.works.mu.Unlock()
	was := r.away()
	switch {
	case silent && r.life.ctx.Err() == nil:
		r.trouble[calls] = fmt.Errorf("the API server does not serve us: %s", explain(err))
		if !r.probing {
			r.probing = true
			r.life.Add(1)
			go r.probe()
		}
	case !silent:
		r.trouble[calls] = nil
	}
	r.turned(was)
	return err
}

// turned tells when the API has gone or come. REQUIRES: workSet.mu held.
func (r *reach) turned(was error) {
	is := r.away()
	if (was == nil) == (is == nil) {
		return
	}
	if is != nil {
		r.log.Warn().Err(is).Msg("the cluster is out of reach: what runs goes on, nothing is started until it is back")
		r.withdraw()
		return
	}
	r.log.Info().Str("cluster", r.api.host).Msg("the cluster is in reach")
	for job, w := range r.works.byJob {
		if w.Ended == nil {
			r.works.queue.Add(job)
		}
	}
	r.changed()
}

// probe asks until the API answers.
func (r *reach) probe() {
	defer r.life.Done()
	for {
		select {
		case <-r.life.ctx.Done():
			return
		case <-time.After(probeEach):
		}
		if err := r.api.alive(r.life.ctx); err == nil || apierrors.IsForbidden(err) {
			r.works.mu.Lock()
			r.probing = false
			r.works.mu.Unlock()
			_ = r.answered(nil)
			return
		}
	}
}

// isSilence: not a word from the API server, or not one that means anything.
func isSilence(err error) bool {
	if apierrors.ReasonForError(err) == "" {
		return !errors.Is(err, context.Canceled)
	}
	return apierrors.IsServiceUnavailable(err)
}

// isQuota: a limit of the namespace is reached.
func isQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// explain says what to do where that is known.
func explain(err error) string {
	text := inLine(err.Error())
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status) && status.Status().Code == http.StatusUnauthorized:
		return text + ": the credentials are expired or unknown: renew the kubeconfig or the token"
	case apierrors.IsForbidden(err):
		return text + ": give the service account the rights that `cloudshare guide operator` lists"
	case utilnet.IsConnectionRefused(err):
		return text + ": is it running?"
	case strings.Contains(text, "certificate"):
		return text + ": look at the kubeconfig's certificates"
	}
	return text
}
