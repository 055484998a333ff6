package audit

import (
	"slices"
	"strings"
	"time"
)

// Entry says who did what.
type Entry struct {
	Time time.Time `json:"time"`
	// User of this site, "" = the token names none. Role is the token's, as far as the request needed it, or the one
	// that did not suffice.
	User string `json:"user,omitempty"`
	Role string `json:"role"`
	// Token is the token's ID, "" = it came by the operator's socket.
	Token string `json:"token,omitempty"`
	// Action is the method and the route, such as DELETE /v1/jobs/:id.
	Action string `json:"action"`
	// Targets are the jobs, members or tokens that the request names, the user and labels by which it selects jobs, and
	// the job that it became.
	Targets []string `json:"targets,omitempty"`
	// Status is that of the answer; of many jobs in one request it says that they were taken one by one.
	Status int `json:"status"`
	// Asked is what was asked for, of a submission that was refused: of one that was not, the job in Targets tells it.
	Asked string `json:"asked,omitempty"`
	// Why it was refused, in one line.
	Why string `json:"why,omitempty"`
	// More of the user's requests were refused at that time, this one being the last. They are not recorded each.
	More int `json:"more,omitempty"`
}

// Query selects entries; zero fields select all.
type Query struct {
	Who   string // a user, a job, or another target
	Limit int    // the newest so many
}

// selects reports whether an entry is asked for. Some tasks of a job are the job.
func (q *Query) selects(e *Entry) bool {
	return q.Who == "" || e.User == q.Who || slices.ContainsFunc(e.Targets, func(t string) bool {
		job, _, _ := strings.Cut(t, "/")
		return t == q.Who || job == q.Who
	})
}
