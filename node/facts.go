package node

import (
	"time"
)

// JobFacts is what never changes of a job, for those who keep records.
type JobFacts struct {
	Name        string
	Labels      map[string]string
	SubmittedAt time.Time
}
