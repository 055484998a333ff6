package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// jobView is one job.
type jobView struct {
	jobRow
	Ended   bool
	Command string
	Timeout string
	Retries string
	User    string
	// CancelledBy says who had it cancelled, "" = nobody, or it is not known.
	CancelledBy string
	Sealed      bool // this broker cannot read the command
	Outline     bool // it is another site's: there is no command, and no output to show
	Labels      []pair
	Env         []pair
	Why         Why
	HasWhy      bool
	Failed      []failedTask // the first ones that failed or were lost
	MoreBad     uint32       // that failed or were lost beside them
	// Waits: the job waits for others, as a whole or task by task.
	Waits bool
	// WaitsOn is what it waits for, or has named, Awaited what waits for it, and MoreAwaited how many beside them.
	WaitsOn     []waitRow
	Awaited     []waitRow
	MoreAwaited int
	Graph       graph // around it; no boxes: it waits for none, and none waits for it
	Tasks       taskPage
	Gantt       gantt
	Log         logPanel
	Files       filesView
	Usage       usageView
	Inputs      []inputRow
	Outputs     string // globs
}

type pair struct{ Key, Value string }

// logPanel is the attempt whose output is shown.
type logPanel struct {
	Task, Attempt uint32
	Stream        string
	Streams       []logLink
	URL           string // of the events, "" = nothing to show yet
	Raw           string // of the text
}

type logLink struct {
	Name, URL string
	Current   bool
}

func (p *Pages) job(r *http.Request, param func(string) string) (view, error) {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return view{}, err
	}
	job, err := p.cfg.Source.Job(r.Context(), id)
	if err != nil {
		return view{}, err
	}
	v := jobView{jobRow: rowOf(job, p.cfg.Now())}
	v.Bar = progressAtLeast(leastOfPage, job.Counts)
	v.Ended = job.State != "queued" && job.State != "running" && job.State != "withdrawn"
	v.Command, v.Timeout, v.Retries = jobspec.ShellWords(job.Spec.Command), timeoutWords(job.Spec), retryWords(job.Spec)
	v.User, v.CancelledBy, v.Outline, v.Sealed = job.User, job.CancelledBy, job.Outline, job.Sealed
	v.Labels, v.Env = pairs(job.Spec.Labels), pairs(job.Spec.Env)
	var tasks []node.Task
	if v.Tasks, tasks, err = p.tasks(r, &job); err != nil {
		return view{}, err
	}
	if v.Tasks.begins() && !v.Outline {
		if v.Failed, err = p.failed(r.Context(), &job); err != nil {
			return view{}, err
		}
		v.MoreBad = v.Bad() - min(v.Bad(), uint32(len(v.Failed)))
	}
	p.dependencies(r.Context(), &job, &v)
	if job.Counts["queued"]+job.Counts[node.Held] > 0 && p.cfg.Whys != nil {
		if why, err := p.cfg.Whys.Why(r.Context(), id); err == nil { // else the job's reason has to do
			v.Why, v.HasWhy = why, true
		}
	}
	v.Gantt = p.taskGantt(id, tasks)
	v.Log = panel(r, id, job.Spec.Count)
	v.Usage = p.usage(r, &job)
	v.Files, v.Inputs, v.Outputs = p.files(r, &job), inputsOf(&job.Spec), outputWords(&job.Spec.Outputs)
	return view{template: "job", data: &v}, nil
}

// timeoutWords says when a task is ended.
func timeoutWords(s jobspec.Spec) string {
	if s.Timeout == 0 {
		return "none"
	}
	return s.Timeout.String()
}

// retryWords says how often a task is tried, and what a loss means.
func retryWords(s jobspec.Spec) string {
	tries := "1 attempt"
	if n := s.Retry.MaxAttempts; n != 1 {
		tries = strconv.FormatUint(uint64(n), 10) + " attempts"
	}
	return tries + s.Retry.Words() + "; when its site is lost: " + s.Retry.LossName()
}

func pairs(m map[string]string) []pair {
	out := make([]pair, 0, len(m))
	for k, v := range m {
		out = append(out, pair{k, v})
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// panel returns what the query says of the log.
func panel(r *http.Request, id command.JobID, tasks uint32) logPanel {
	l := logPanel{
		Task: min(parameter(r, "task", command.MaxCount-1), max(tasks, 1)-1), Attempt: parameter(r, "attempt", 1<<31),
		Stream: r.URL.Query().Get("stream"),
	}
	if l.Stream != "stderr" {
		l.Stream = "stdout"
	}
	base := "/jobs/" + id.String()
	for _, s := range []string{"stdout", "stderr"} {
		l.Streams = append(l.Streams, logLink{s, logURL(base, l.Task, l.Attempt, s) + "#log", s == l.Stream})
	}
	l.URL = logURL(base+"/log", l.Task, l.Attempt, l.Stream)
	l.Raw = logURL("/v1"+base+"/logs", l.Task, l.Attempt, l.Stream)
	return l
}

// logURL names a task's output; attempt 0 is the latest.
func logURL(path string, task, attempt uint32, stream string) string {
	link := path + "?task=" + strconv.FormatUint(uint64(task), 10) + "&stream=" + stream
	if attempt > 0 {
		link += "&attempt=" + strconv.FormatUint(uint64(attempt), 10)
	}
	return link
}

// parameter reads a number of the query; it returns 0 for anything else and for a number above most.
func parameter(r *http.Request, name string, most uint64) uint32 {
	n, err := strconv.ParseUint(r.URL.Query().Get(name), 10, 32)
	if err != nil || n > most {
		return 0
	}
	return uint32(n)
}

// cancel asks for a job's end and shows it.
func (p *Pages) cancel(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err == nil {
		err = p.cfg.Source.Cancel(r.Context(), id)
	}
	if err != nil {
		return p.refuse(w, r, err)
	}
	guard(w.Header())
	http.Redirect(w, r, "/jobs/"+id.String(), http.StatusSeeOther)
	return nil
}

// foreign reports whether a browser says that another origin's page asks.
func (p *Pages) foreign(r *http.Request) bool { return p.origins.Check(r) != nil }
