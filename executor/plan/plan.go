// Package plan has the words for tasks that run several commands one after the other: what the broker of a job's owner
// writes into the job, as the input [Path], and what became of it, which package steps writes as [RecordPath] at step 6
// of a job's way. It imports nothing of ours.
package plan

import (
	"encoding/json"
	"fmt"
	"time"
)

// Program is the first word of a command that a handler replaces by the path of this program, and Verb is the argument
// with which the program runs the plan.
const (
	Program = "cloudshare-steps"
	Verb    = "steps"
)

// Paths in the work folder.
const (
	// Folder has all of the others.
	Folder = "cloudshare-steps"
	// Path is where the plan stands.
	Path = Folder + "/plan.json"
	// RecordPath is where the record is, once all is done.
	RecordPath = Folder + "/record.json"
	// OutFolder has what was left at absolute paths: see [Output.Folder].
	OutFolder = Folder + "/out"
)

// Trouble is the exit code of an attempt of which something else than a step has failed.
const Trouble = 125

// Plan is what to run.
type Plan struct {
	Folders []string `json:"folders,omitempty"` // are made first, with those above them
	Steps   []Step   `json:"steps"`
	Outputs []Output `json:"outputs,omitempty"`
}

// Step is one command.
type Step struct {
	Command []string          `json:"command"`
	Workdir string            `json:"workdir,omitempty"` // "" = where the container begins
	Env     map[string]string `json:"env,omitempty"`
	// Stdin, Stdout and Stderr are absolute paths; "" = nothing, and the attempt's own output.
	Stdin  string `json:"stdin,omitempty"`
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// IgnoreError has the next step begin whatever this one's exit code is.
	IgnoreError bool `json:"ignore_error,omitempty"`
}

// Output is a file, the files below a folder, or those that a pattern matches, at an absolute path.
type Output struct {
	Path string `json:"path"`
	// Prefix, if the path is a pattern, is the folder below which a match keeps its path.
	Prefix string `json:"prefix,omitempty"`
	Tree   bool   `json:"tree,omitempty"` // a folder's files, or those of the folders that match
}

// Folder returns where in the work folder the files of the n-th output are: those of a folder or a pattern below it by
// their paths, a single file as [Single].
func (o *Output) Folder(n int) string { return fmt.Sprintf("%s/%d", OutFolder, n) }

// Single is the name of an output that is one file, in its folder.
const Single = "file"

// Many reports whether an output may be several files.
func (o *Output) Many() bool { return o.Tree || o.Prefix != "" }

// Record is what became of a plan.
type Record struct {
	Steps []StepRecord `json:"steps"`
	// Trouble is what failed besides a step, in one line.
	Trouble string `json:"trouble,omitempty"`
}

// StepRecord is what became of a step.
type StepRecord struct {
	ExitCode int       `json:"exit_code"` // 128 and the signal's number if one ended it
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Stdout   string    `json:"stdout,omitempty"` // the end of it: see MaxTail
	Stderr   string    `json:"stderr,omitempty"`
}

// MaxTail is how many bytes of each stream of a step a record has.
const MaxTail = 4 << 10

// MaxRecord bounds an encoded record, in bytes.
const MaxRecord = 1 << 20

// MaxSteps bounds the steps of a plan: their records have room then.
const MaxSteps = 64

// Command returns the command of a task that runs the plan at Path.
func Command() []string { return []string{Program, Verb} }

// Is reports whether a command is that of a plan.
func Is(command []string) bool {
	return len(command) == 2 && command[0] == Program && command[1] == Verb
}

// ParseRecord reads a record, whose task may have written anything.
func ParseRecord(text []byte) (r Record, err error) {
	if len(text) > MaxRecord {
		return Record{}, fmt.Errorf("a record of steps has %d bytes: at most %d", len(text), MaxRecord)
	}
	if err = json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("read the record of steps: %w", err)
	}
	if len(r.Steps) > MaxSteps {
		r.Steps = r.Steps[:MaxSteps]
	}
	return r, nil
}
