package jobspec

import (
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/files"
)

// Input is a file, or a directory of files, that each task of a job finds when it begins.
type Input struct {
	// Path is where it stands: below the work folder (see files.CheckPath) or, for an image, anywhere.
	Path string
	From InputFrom
	// Blob is the file's bytes, or of FromDirectory and FromEach those of a manifest. Its hash is zero of FromContent,
	// and of FromURL until the owner's broker has fetched it; its size is UnknownSize until the broker has looked.
	Blob       files.Blob
	Content    []byte // of FromContent
	URL        string // of FromURL
	Executable bool   // of a file; those of a directory say it themselves
}

// UnknownSize is the size of a blob of which a spec says the hash only.
const UnknownSize = -1

// InputFrom says what an input is made of.
type InputFrom uint8

// The kinds of inputs.
const (
	FromFile      InputFrom = iota // a blob
	FromDirectory                  // the files of a manifest, below Path
	FromEach                       // of a manifest the file at the task's index, as Path: each task gets one
	FromContent                    // bytes that stand in the spec
	FromURL                        // what the owner's broker fetches from there, before the job is accepted
)

// CheckEach returns what is wrong with an input of which each task gets one of so many files: the one whose place in
// the manifest, from 0, is the task's index. So a task that is run again, beside others than before, gets the same one.
// The error is a *SpecError.
func (s *Spec) CheckEach(input, count int) error {
	field := fmt.Sprintf("inputs.%d.each", input)
	if n := s.Indices.Len(); n > 0 {
		if last := s.Indices.At(n - 1); int64(last) >= int64(count) {
			return &SpecError{Field: field, Reason: fmt.Sprintf("has %d files, so the last index may be %d, not %d",
				count, count-1, last)}
		}
		return nil
	}
	if int64(s.Count) != int64(count) {
		return &SpecError{Field: field, Reason: fmt.Sprintf("has %d files for %d tasks: give count %d, or indices",
			count, s.Count, count)}
	}
	return nil
}

// Outputs are the files that each task of a job is to leave, for its owner to have. The zero value is none.
type Outputs struct {
	Paths    []string // globs, each of which must match: see executor.ParseGlob
	Optional []string // globs of what may be missing
	MaxBytes int64    // of all files of a task together, and of what is reserved for them
	When     executor.When
}

// Wanted reports whether there are any.
func (o *Outputs) Wanted() bool { return len(o.Paths)+len(o.Optional) > 0 }

// DefaultOutputBytes is Outputs.MaxBytes of a spec that says nothing.
const DefaultOutputBytes = 1 << 30
