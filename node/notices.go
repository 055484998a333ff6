package node

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// ErrNoticeRefused says that a job names a URL that this broker sends no notices to.
var ErrNoticeRefused = errors.New("no notice is sent there") // 422

// Notices are what is to be sent of one job's end, and what became of it: the record of the owner's broker.
type Notices struct {
	User string   `json:"user,omitempty"` // whose job it is; "" = the site's own
	List []Notice `json:"list"`           // one for each hook of the job
	// Event is the CloudEvent that is sent, once the job has ended; it is the same each time. EndedMs is when it was
	// made, in unix milliseconds.
	Event   json.RawMessage `json:"event,omitempty"`
	EndedMs int64           `json:"ended_ms,omitempty"`
}

// NewNotices returns the record of a job that was just accepted.
func NewNotices(user string, hooks []jobspec.Hook) Notices {
	n := Notices{User: user}
	for _, h := range hooks {
		n.List = append(n.List, Notice{Hook: h})
	}
	return n
}

// Hooks returns what the job was submitted with.
func (n *Notices) Hooks() (list []jobspec.Hook) {
	for i := range n.List {
		list = append(list, n.List[i].Hook)
	}
	return list
}

// Open reports whether something is to be done still.
func (n *Notices) Open() bool {
	return slices.ContainsFunc(n.List, func(x Notice) bool { return x.State == NoticeWaiting })
}

// Undelivered returns those that are due and that their receivers have not taken.
func (n *Notices) Undelivered() (list []Notice) {
	for i := range n.List {
		if s := n.List[i].State; s == NoticeGivenUp || s == NoticeWaiting && n.EndedMs > 0 {
			list = append(list, n.List[i])
		}
	}
	return list
}

// Clone returns a copy that shares no list that changes.
func (n *Notices) Clone() Notices {
	out := *n
	out.List = slices.Clone(n.List)
	return out
}

// Notice is one of them.
type Notice struct {
	jobspec.Hook
	State    NoticeState `json:"state,omitempty"`
	Attempts int         `json:"attempts,omitempty"`
	// LastMs and NextMs are when the last attempt ended and the next one begins at the earliest, in unix milliseconds.
	LastMs int64 `json:"last_ms,omitempty"`
	NextMs int64 `json:"next_ms,omitempty"`
	// Outcome of the last attempt, for people.
	Outcome string `json:"outcome,omitempty"`
}

// LastAt returns when the last attempt ended, zero before that; NextAt when the next one begins.
func (n *Notice) LastAt() time.Time { return momentOf(n.LastMs) }

// NextAt returns when the next attempt begins at the earliest, zero if there is none.
func (n *Notice) NextAt() time.Time { return momentOf(n.NextMs) }

func momentOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// NoticeState says how far a notice is.
type NoticeState uint8

// The states of notices.
const (
	NoticeWaiting  NoticeState = iota // for the job's end, or for its next attempt
	NoticeSent                        // its receiver has taken it
	NoticeGivenUp                     // its receiver has not, or has said that it wants none
	NoticeUnwanted                    // the job has ended in a way that it is not on
)

var noticeStates = [...]string{"waiting", "sent", "given up", "not wanted"}

// String returns the state's name for people.
func (s NoticeState) String() string {
	if int(s) >= len(noticeStates) {
		return "unknown"
	}
	return noticeStates[s]
}

// NoticeFigures count notices since the broker's start.
type NoticeFigures struct {
	Sent, Failed, GivenUp uint64 // deliveries, attempts that failed, and notices that were given up
	// Waiting are notices of ended jobs that are not delivered; OldestMs is for how long the oldest waits.
	Waiting  int
	OldestMs int64
}
