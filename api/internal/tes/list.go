package tes

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Page sizes.
const (
	defaultPage = 256
	maxPage     = 2047
	// maxPageBytes is how many bytes of documents, ends and outputs a page has, if it has more than one task.
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
		bytes += task.outputBytes()
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
