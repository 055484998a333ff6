package tes

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
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
	body, err := t.Bodies.Read(w, r)
	if err != nil {
		return err
	}
	id, err := t.submit(r.Context(), body)
	if err != nil {
		t.Refused(err)
		return err
	}
	t.Took()
	w.Header().Set("Location", Root+"/tasks/"+id.String())
	return rest.WriteJSON(w, http.StatusOK, tesCreated{ID: id.String()})
}

// submit makes a job of a task.
func (t *Tasks) submit(ctx context.Context, body []byte) (id command.JobID, err error) {
	user := userOf(ctx)
	var p *plan
	if err = t.turns.read(ctx, func() error {
		task, perr := parse(body)
		if perr == nil {
			p, perr = translate(task, user, t.Roots)
		}
		return perr
	}); err != nil {
		return id, err
	}
	spec, err := t.bring(ctx, p, user)
	if err != nil {
		return id, err
	}
	attached, err := p.attached()
	if err != nil {
		return id, err
	}
	answer := t.Broker.Submit(ctx, []node.Request{{Spec: spec, Attached: attached}})[0]
	return answer.ID, answer.Err
}

// bring returns what a task asks for once its inputs are in the store.
func (t *Tasks) bring(ctx context.Context, p *plan, user string) (spec jobspec.Spec, err error) {
	if p.fetches() {
		done, terr := t.turns.bring(ctx, user)
		if terr != nil {
			return spec, terr
		}
		defer done()
	}
	inputs, err := t.store(ctx, p, user)
	if err != nil {
		return spec, err
	}
	if spec, err = p.spec(inputs); err == nil {
		err = t.await(ctx, &spec)
	}
	return spec, err
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
	return rest.WriteJSON(w, http.StatusOK, tesCanceled{})
}

// Page sizes.
const (
	defaultPage = 256
	maxPage     = 2047
	// maxPageBytes is how many bytes of documents a page has, if it has more than one.
	maxPageBytes = 4 << 20
)

// filter is what a list is asked for.
type filter struct {
	prefix, state string
	tags          map[string]string // "" = whatever the value is
}

// list answers with a page of tasks, newest first.
func (t *Tasks) list(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	v, err := viewOf(r)
	if err != nil {
		return err
	}
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	size, err := rest.QueryUint(r, "page_size", defaultPage, 1, maxPage)
	if err != nil {
		return err
	}
	below, err := parseToken(r.URL.Query().Get("page_token"))
	if err != nil {
		return err
	}
	found, next := t.Broker.AttachedJobs(r.Context(), below, int(size), f.takes)
	out := tesList{Tasks: make([]tesTask, 0, len(found))}
	bytes := int64(0)
	for i := range found {
		if bytes += found[i].Bytes; v != viewMinimal && i > 0 && bytes > maxPageBytes {
			next = found[i-1].Num
			break
		}
		id := command.JobID{Site: t.Broker.Site(), Num: found[i].Num}
		task, err := t.task(r.Context(), id, v)
		if errors.Is(err, node.ErrNotFound) {
			continue // forgotten meanwhile
		}
		if err != nil {
			return err
		}
		if f.state == "" || task.State == f.state {
			out.Tasks = append(out.Tasks, task)
		}
	}
	if next != 0 {
		out.NextPageToken = tokenOf(next)
	}
	return rest.WriteJSON(w, http.StatusOK, out)
}

// maxFilter bounds each text of a filter, in bytes, and maxFilterTags the tags of one.
const (
	maxFilter     = 1024
	maxFilterTags = 100
)

func filterOf(r *http.Request) (f filter, err error) {
	q := r.URL.Query()
	f.prefix, f.state = q.Get("name_prefix"), q.Get("state")
	if len(f.prefix) > maxFilter {
		return f, problem.BadQuery("name_prefix", "", "must have at most 1024 bytes")
	}
	if f.state != "" && !slices.Contains(states, f.state) {
		return f, problem.BadQuery("state", f.state, "must be one of "+strings.Join(states, ", "))
	}
	keys, values := q["tag_key"], q["tag_value"]
	switch {
	case len(keys) > maxFilterTags:
		return f, problem.BadQuery("tag_key", "", "stands more than 100 times")
	case len(values) > len(keys):
		return f, problem.BadQuery("tag_value", "", "stands more often than tag_key")
	}
	f.tags = map[string]string{}
	for i, key := range keys {
		value := ""
		if i < len(values) {
			value = values[i]
		}
		f.tags[key] = value
	}
	return f, nil
}

// takes reports whether a task is asked for, but for its state.
func (f *filter) takes(a *node.Attached) bool {
	if !strings.HasPrefix(a.Name, f.prefix) {
		return false
	}
	for key, value := range f.tags {
		if has, ok := a.Tags[key]; !ok || value != "" && has != value {
			return false
		}
	}
	return true
}

// tokenPrefix tells tokens of pages from other texts.
const tokenPrefix = "below:"

func tokenOf(num uint64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + strconv.FormatUint(num, 10)))
}

func parseToken(text string) (num uint64, err error) {
	if text == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text[:min(len(text), 64)])
	if err == nil {
		digits, _ := strings.CutPrefix(string(raw), tokenPrefix)
		num, err = strconv.ParseUint(digits, 10, 64)
	}
	if err != nil || tokenOf(num) != text {
		return 0, problem.BadQuery("page_token", "", "is none of this service's: give next_page_token of the page before")
	}
	return num, nil
}
