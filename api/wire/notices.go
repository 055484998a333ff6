package wire

import "time"

// SpecNotify is a URL that is told of a job's end: by POST of a CloudEvent that is signed as Standard Webhooks says.
type SpecNotify struct {
	URL string   `json:"url" maxLength:"2048" example:"https://hooks.example.org/nightly" doc:"https only, at a host that the site's operator allows (notify.to)"`
	On  []string `json:"on,omitempty" required:"false" enum:"ended,failed" doc:"ended: whatever the end, the default; failed: an end other than success"`
}

// Notice says what became of telling a URL.
type Notice struct {
	URL      string     `json:"url"`
	On       []string   `json:"on" enum:"ended,failed"`
	State    string     `json:"state" enum:"waiting,sent,given up,not wanted" doc:"waiting: for the job's end, or for the next attempt"`
	Attempts int        `json:"attempts"`
	LastAt   *time.Time `json:"last_at,omitempty" doc:"end of the last attempt"`
	NextAt   *time.Time `json:"next_at,omitempty" doc:"when the next one begins at the earliest"`
	Outcome  string     `json:"outcome,omitempty" doc:"of the last attempt, for people"`
}
