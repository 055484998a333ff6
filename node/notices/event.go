package notices

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// ContentType is that of a CloudEvent in its structured JSON form (CloudEvents 1.0.2, HTTP protocol binding, 3.2).
const ContentType = "application/cloudevents+json; charset=utf-8"

// EventType is what happened, with the name that the feed of events has for it.
const EventType = "com.github.cloudshare.job.ended"

// cloudEvent has the attributes of CloudEvents 1.0.2.
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            endedJob  `json:"data"`
}

// endedJob is what is told of a job: the names are those of GET /v1/jobs/{id}.
type endedJob struct {
	Job         string            `json:"job"`
	Name        string            `json:"name,omitempty"`
	State       string            `json:"state"`
	Reason      string            `json:"reason,omitempty"`
	Counts      map[string]uint32 `json:"counts,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	SubmittedAt *time.Time        `json:"submitted_at,omitempty"`
	StartedAt   *time.Time        `json:"started_at,omitempty"`
	EndedAt     *time.Time        `json:"ended_at,omitempty"`
}

// maxReason bounds what is told of why a job ended, in bytes.
const maxReason = 1000

// eventOf returns the event that tells a job's end.
func eventOf(source string, j *node.Job, now time.Time) json.RawMessage {
	subject := j.ID.String()
	e := cloudEvent{
		SpecVersion: "1.0", ID: eventID(source, subject), Source: source, Type: EventType, Subject: subject, Time: now.UTC(),
		DataContentType: "application/json",
		Data: endedJob{
			Job: subject, Name: j.Spec.Name, State: j.State, Reason: bounded(j.Reason), Counts: j.Counts,
			Labels: j.Spec.Labels, SubmittedAt: moment(j.SubmittedAt), StartedAt: moment(j.StartedAt),
			EndedAt: moment(j.EndedAt),
		},
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic("event does not encode: " + err.Error()) // it is made of texts and numbers
	}
	return text
}

// eventID returns an event's id. It is the same whenever it is made, and has no full stop, which parts what is signed.
func eventID(source, subject string) string {
	sum := sha256.Sum256([]byte(source + "\n" + subject + "\n" + EventType))
	return "evt_" + hex.EncodeToString(sum[:16])
}

func bounded(text string) string {
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
