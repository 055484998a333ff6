package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/cloudshare/cloudshare/executor"
)

// calls is the name of the trouble that single calls have.
const calls = "calls"

// probeEach is how often an API that did not answer a call is asked whether it is
// back. Watches come back by themselves.
const probeEach = time.Second

// away says why nothing can be started, nil = it can. REQUIRES: workSet.mu held.
func (h *Handler) away() error {
	for _, kind := range []string{calls, "nodes", "pods", "jobs"} {
		if err := h.trouble[kind]; err != nil {
			return err
		}
	}
	if !h.view.isSynced() {
		return errors.New("the API server has not answered yet")
	}
	return nil
}

// heard notes how a watch fares.
func (h *Handler) heard(kind string, err error) {
	if h.life.ctx.Err() != nil {
		return
	}
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsTimeout(err),
		apierrors.IsTooManyRequests(err):
		return // it is asked again at once
	case err != nil:
		err = fmt.Errorf("%s cannot be watched: %s", kind, explain(err))
	}
	h.works.mu.Lock()
	was := h.away()
	h.trouble[kind] = err
	if err == nil {
		h.trouble[calls] = nil
	} else {
		close1(h.looked)
	}
	h.turned(was)
	h.works.mu.Unlock()
}

// answered notes how a call fared, and returns its error.
func (h *Handler) answered(err error) error {
	silent := err != nil && (isSilence(err) || apierrors.IsUnauthorized(err))
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	was := h.away()
	switch {
	case silent && h.life.ctx.Err() == nil:
		h.trouble[calls] = fmt.Errorf("the API server does not serve us: %s", explain(err))
		if !h.probing {
			h.probing = true
			h.life.Add(1)
			go h.probe()
		}
	case !silent:
		h.trouble[calls] = nil
	}
	h.turned(was)
	return err
}

// turned tells when the API has gone or come. REQUIRES: workSet.mu held.
func (h *Handler) turned(was error) {
	is := h.away()
	if (was == nil) == (is == nil) {
		return
	}
	if is != nil {
		h.cfg.Logger.Warn().Err(is).Msg("the cluster is out of reach: what runs goes on, nothing is started until it is back")
		if h.machines != nil {
			h.machines = nil
			h.works.attempts.Events.Put(executor.Event{Capacity: true})
		}
		return
	}
	h.cfg.Logger.Info().Str("cluster", h.api.host).Msg("the cluster is in reach")
	for job, w := range h.works.byJob {
		if w.Ended == nil {
			h.works.queue.Add(job)
		}
	}
	h.changes()
}

// probe asks until the API answers.
func (h *Handler) probe() {
	defer h.life.Done()
	for {
		select {
		case <-h.life.ctx.Done():
			return
		case <-time.After(probeEach):
		}
		if err := h.api.alive(h.life.ctx); err == nil || apierrors.IsForbidden(err) {
			h.works.mu.Lock()
			h.probing = false
			h.works.mu.Unlock()
			_ = h.answered(nil)
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
