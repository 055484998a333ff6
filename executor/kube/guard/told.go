package guard

import (
	"encoding/json"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Told is what a guard says last of its attempt.
type Told struct {
	Version int `json:"v"`
	// Begun: the task's process ran, for Ran; else Result says why not.
	Begun    bool           `json:"begun"`
	Ran      time.Duration  `json:"ran,omitempty"`
	Cause    executor.Cause `json:"cause"`
	ExitCode int            `json:"exit"`
	Signal   int            `json:"signal,omitempty"`
	Detail   string         `json:"detail,omitempty"`
	Usage    executor.Usage `json:"usage,omitzero"`
	// Unsent is why the files that the task has left were not sent, "" = they were, or are not wanted.
	Unsent string `json:"unsent,omitempty"`
}

func isSane(u executor.Usage) bool {
	return u.PeakMemory >= 0 && u.User >= 0 && u.System >= 0 &&
		u.MemoryFrom <= executor.UsageCgroup && u.TimeFrom <= executor.UsageCgroup
}

// Signalled is the detail of a task that its guard ended since a signal asked for it: that of a kubelet, or the task's.
const Signalled = "stopped: " + stopped

const stopped = "its container was stopped"

// maxTold is what Kubernetes keeps of last words, in bytes; the others leave room
// for all else.
const (
	maxTold   = 4096
	maxDetail = 400
	maxUnsent = 200
)

// ReadTold reads last words; false: they are not a guard's. A task could have
// written them if its guard was killed: it deceives its own job only.
func ReadTold(text string) (t Told, ok bool) {
	if len(text) > maxTold || json.Unmarshal([]byte(text), &t) != nil {
		return Told{}, false
	}
	sane := t.Version == version && t.Cause <= executor.Declined && t.Ran >= 0 && len(t.Detail) <= maxTold &&
		t.ExitCode >= 0 && t.ExitCode <= 255 && t.Signal >= 0 && t.Signal <= 64 && isSane(t.Usage)
	if !sane {
		return Told{}, false
	}
	return t, true
}

// encode returns the line that Told reads.
func (t Told) encode() []byte {
	t.Version = version
	t.Detail = t.Detail[:min(len(t.Detail), maxDetail)]
	t.Unsent = t.Unsent[:min(len(t.Unsent), maxUnsent)]
	b, err := json.Marshal(t)
	if err != nil { // numbers and one string
		return nil
	}
	return b
}
