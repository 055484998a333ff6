package tes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// info answers what this service is. What it says of storage is the asker's.
func (t *Tasks) info(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	at := scheme + "://" + r.Host
	storage := []string{}
	for _, root := range t.Roots.Of(userOf(r.Context())) {
		storage = append(storage, "file://"+root.Name)
	}
	return rest.WriteJSON(w, http.StatusOK, tesServiceInfo{
		ID: "cloudshare." + t.Broker.Site() + ".tes", Name: "CloudShare, site " + t.Broker.Site(),
		Type:        tesServiceType{Group: "org.ga4gh", Artifact: "tes", Version: "1.1.0"},
		Description: "Tasks of this site's users run on the idle machines of a federation of sites.",
		Organization: tesOrganization{
			Name: t.Broker.Site(), URL: at,
		},
		Version: t.Version, Storage: storage, BackendParameters: backendKeys(),
	})
}

// create takes a task.
func (t *Tasks) create(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	if _, err := rest.MediaType(r, wire.TypeJSON); err != nil {
		return err
	}
	body, release, err := t.Bodies.ReadHeld(w, r)
	defer release() // a task may wait long for its turn, with its text
	if err != nil {
		return wordBody(err)
	}
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return err
	}
	answer, err := t.submit(r.Context(), body, key)
	if err != nil {
		t.Refused(err)
		return err
	}
	if answer.Replayed {
		w.Header().Set(wire.HeaderReplayed, "true")
	} else {
		t.Took()
	}
	w.Header().Set("Location", Root+"/tasks/"+answer.ID.String())
	return rest.WriteJSON(w, http.StatusOK, tesCreated{ID: answer.ID.String()})
}

// wordBody words for tasks why a text was not read: what is said of jobs is of no use to them.
func wordBody(err error) error {
	if problem.Of(err).Status != http.StatusRequestEntityTooLarge {
		return err
	}
	return problem.OfStatus(http.StatusRequestEntityTooLarge, fmt.Sprintf("a task's may have %d bytes: give large contents a url",
		MaxBody))
}

// viewOf reads how much is asked for.
func viewOf(r *http.Request) (view, error) {
	text := r.URL.Query().Get("view")
	switch v := view(text); v {
	case "":
		return viewMinimal, nil
	case viewMinimal, viewBasic, viewFull:
		return v, nil
	}
	return "", problem.BadQuery("view", text, "must be MINIMAL, BASIC or FULL")
}

// get answers with one task.
func (t *Tasks) get(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	v, err := viewOf(r)
	if err != nil {
		return err
	}
	id, err := idOf(param("id"))
	if err != nil {
		return err
	}
	task, err := t.task(r.Context(), id, v)
	if err != nil {
		return err
	}
	if v == viewFull && len(task.Logs[0].Logs) == 1 {
		t.addOutput(r.Context(), id, &task.Logs[0].Logs[0])
	}
	return rest.WriteJSON(w, http.StatusOK, task)
}

// task returns one task.
func (t *Tasks) task(ctx context.Context, id command.JobID, v view) (task tesTask, err error) {
	attached := t.Broker.Attached
	if v != viewMinimal {
		attached = t.Broker.AttachedDocument
	}
	a, err := attached(ctx, id)
	if err != nil {
		return task, err
	}
	job, err := t.job(ctx, id, &a, v)
	if err != nil {
		return task, err
	}
	return taskOf(id.String(), &a, &job, v)
}

// job returns the job of a task, as far as it is of use. One that has ended may be kept no more.
func (t *Tasks) job(ctx context.Context, id command.JobID, a *node.Attached, v view) (job node.Job, err error) {
	if a.End != nil && v == viewMinimal {
		return job, nil
	}
	job, err = t.Broker.Job(ctx, id)
	if errors.Is(err, node.ErrNotFound) {
		return job, nil // its end is told all the same, or soon
	}
	return job, err
}

// tailLines bounds what is told of a task's output.
const tailLines = 100

// addOutput adds the end of what a task has written, if it is to be had and is not known yet.
func (t *Tasks) addOutput(ctx context.Context, id command.JobID, l *tesExecutorLog) {
	for stream, to := range map[string]*string{"stdout": &l.Stdout, "stderr": &l.Stderr} {
		if *to != "" {
			continue
		}
		if text, err := t.Tail(ctx, node.LogQuery{Job: id, Stream: stream}, tailLines); err == nil {
			*to = strings.ToValidUTF8(string(text), "�")
		}
	}
}

// cancel ends a task. One that has ended stays as it is.
func (t *Tasks) cancel(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	whole, err := url.PathUnescape(param("id")) // clients escape the colon, or do not
	text, yes := cancelled(whole)
	if err != nil || !yes {
		return problem.OfStatus(http.StatusNotFound, "a task is cancelled by POST …/tasks/ID:cancel")
	}
	id, err := idOf(text)
	if err != nil {
		return err
	}
	a, err := t.Broker.Attached(r.Context(), id)
	if err != nil {
		return err
	}
	err = t.Broker.Cancel(r.Context(), id)
	if err != nil && !errors.Is(err, node.ErrEnded) && !(errors.Is(err, node.ErrNotFound) && a.End != nil) {
		return err
	}
	t.imports.stop(id.Num)
	return rest.WriteJSON(w, http.StatusOK, tesCanceled{})
}
