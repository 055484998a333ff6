package api

import (
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// maxTargets is how many jobs one request may name.
	maxTargets = 1000
	// maxPeerAnswer bounds another broker's answer about them, in bytes.
	maxPeerAnswer = 16 << 20
)

// target is a job that a request names, or some of its tasks.
type target struct {
	node.CancelTarget
	text string // as it was named
}

// targets reads the jobs that a request names: each once, at most maxTargets.
func targets(r *http.Request, withTasks bool) ([]target, error) {
	var out []target
	seen := map[string]bool{}
	for _, text := range r.URL.Query()["job"] {
		if seen[text] {
			continue
		}
		seen[text] = true
		t, err := parseTarget(text, withTasks)
		if err != nil {
			return nil, err
		}
		if out = append(out, t); len(out) > maxTargets {
			return nil, problem.BadQuery("job", "", "names more than "+strconv.Itoa(maxTargets)+" jobs; ask in parts")
		}
	}
	return out, nil
}

// parseTarget reads SITE.NUMBER, or SITE.NUMBER/TASKS.
func parseTarget(text string, withTasks bool) (t target, err error) {
	t.text = text
	name, tasks, some := cut(text)
	if t.Job, err = fsm.ParseJobID(name); err != nil || some && !withTasks {
		return t, problem.BadQuery("job", text, "must be a job's id, such as site-1.42")
	}
	if some {
		if t.Tasks, err = jobspec.ParseIndices(tasks); err != nil {
			return t, problem.BadQuery("job", text, "after the job's id "+err.Error())
		}
	}
	return t, nil
}

// others gathers the targets of a request that other brokers answer for.
type others struct {
	sites map[string]*elsewhere
}

// elsewhere is what one other broker answers for.
type elsewhere struct {
	at   *node.ElsewhereError
	jobs []int // places in the request
}

// take notes a target if another broker answers for it.
func (o *others) take(i int, err error) bool {
	var at *node.ElsewhereError
	if !errors.As(err, &at) {
		return false
	}
	if o.sites == nil {
		o.sites = map[string]*elsewhere{}
	}
	if o.sites[at.Site] == nil {
		o.sites[at.Site] = &elsewhere{at: at}
	}
	o.sites[at.Site].jobs = append(o.sites[at.Site].jobs, i)
	return true
}

// ask has each of the brokers answer for its targets, searchWidth at a time.
func (o *others) ask(each func(*elsewhere)) {
	var running sync.WaitGroup
	room := make(chan struct{}, searchWidth)
	for _, e := range o.sites {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			each(e)
		})
	}
	running.Wait()
}
