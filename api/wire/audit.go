package wire

import "time"

// AuditEntry says who did what at a site.
type AuditEntry struct {
	Time    time.Time `json:"time"`
	User    string    `json:"user,omitempty" doc:"of the token; none: the token names no user"`
	Role    string    `json:"role" enum:"read-only,user,operator"`
	Token   string    `json:"token,omitempty" doc:"its ID; none: the request came by the operator's socket"`
	Action  string    `json:"action" example:"DELETE /v1/jobs/site-1.7"`
	Targets []string  `json:"targets,omitempty" doc:"the jobs, members or tokens that it names, the user and labels by which it selects jobs, and the job that it became"`
	Status  int       `json:"status" doc:"of the answer"`
	Asked   string    `json:"asked,omitempty" doc:"what a refused submission asked for: name or first word of the command, and tasks"`
	Why     string    `json:"why,omitempty" doc:"it was refused"`
	More    int       `json:"more,omitempty" doc:"so many requests of the user were refused within the minute and are not listed; this was the last"`
}
