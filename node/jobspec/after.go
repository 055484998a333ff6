package jobspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// MaxAfter bounds the jobs that a job may wait for.
const MaxAfter = 64

// When says how a job must end so that what waits for it may begin.
type When uint8

// The conditions. Their words are the API's.
const (
	WhenOK    When = iota // succeeded
	WhenAny               // ended, in whatever way
	WhenNotOK             // failed, cancelled or lost
	WhenEach              // of each task: the task at its place has succeeded
)

var afterWords = [...]string{WhenOK: "ok", WhenAny: "any", WhenNotOK: "notok", WhenEach: "each"}

// AfterWords returns the words that after.N.when may be.
func AfterWords() []string { return slices.Clone(afterWords[:]) }

// String returns the condition's word in the API.
func (w When) String() string { return afterWords[w] }

// Dependency is a job that another one waits for.
type Dependency struct {
	Job command.JobID
	// Line from 1, of the same request: the job is the one that the line has become. 0: Job says which. The owner's
	// broker sets Job before it makes a JobSpec.
	Line uint32
	When When
}

// Name returns the job as a spec names it: its id, or "#n" for a line.
func (d *Dependency) Name() string {
	if d.Line > 0 {
		return "#" + strconv.FormatUint(uint64(d.Line), 10)
	}
	return d.Job.String()
}

var afterFields = [...]string{"job", "when"}

// after reads the jobs that a job waits for. Their order has no meaning.
func (p *specParser) after(name string) error {
	if p.null() {
		return nil
	}
	if p.peek() != '[' {
		return p.wrong(name, "a list of objects")
	}
	err := p.array(func() error {
		n := len(p.spec.After)
		if n == MaxAfter {
			return &SpecError{Field: name, Reason: fmt.Sprintf(
				"names more than %d jobs: have one job wait for them, and this one for that", MaxAfter)}
		}
		d, err := p.dependency(fmt.Sprintf("%s.%d", name, n))
		if err == nil {
			p.spec.After = append(p.spec.After, d)
		}
		return err
	})
	if err != nil {
		return err
	}
	return uniqueAfter(name, p.spec.After)
}

// dependency reads one job that is waited for.
func (p *specParser) dependency(name string) (d Dependency, err error) {
	if p.peek() != '{' {
		return d, p.wrong(name, `an object such as {"job": "site-1.3", "when": "ok"}`)
	}
	seen := uint32(0)
	var job string
	err = p.object(func(key string) error {
		bit, unknown := knownIn(afterFields[:], seen, name+".", key)
		if seen |= bit; unknown != nil {
			return unknown
		}
		if key == "when" {
			return p.afterWhen(name+".when", &d.When)
		}
		return p.text(name+".job", &job)
	})
	if err == nil {
		err = d.parseJob(name+".job", job)
	}
	return d, err
}

// parseJob reads an id, or "#n".
func (d *Dependency) parseJob(field, text string) (err error) {
	if line, is := strings.CutPrefix(text, "#"); is {
		n, bad := strconv.ParseUint(line, 10, 32)
		if d.Line = uint32(n); bad == nil && n > 0 && strconv.FormatUint(n, 10) == line {
			return nil
		}
	} else if d.Job, err = command.ParseJobID(text); err == nil {
		return nil
	}
	reason := `must be a job's id such as "site-1.3", or "#n" for line n of the same request`
	if text == "" {
		return &SpecError{Field: field, Reason: "is missing: it " + reason}
	}
	return &SpecError{Field: field, Value: quoted(text), Reason: reason}
}

func (p *specParser) afterWhen(name string, to *When) error {
	text := afterWords[WhenOK]
	if err := p.text(name, &text); err != nil {
		return err
	}
	i := slices.Index(afterWords[:], text)
	if i >= 0 {
		*to = When(i)
		return nil
	}
	return &SpecError{Field: name, Value: quoted(text), Reason: `must be "ok", "any", "notok" or "each"`}
}

// uniqueAfter sorts jobs that are waited for, and refuses one that is named twice.
func uniqueAfter(name string, list []Dependency) error {
	slices.SortFunc(list, func(a, b Dependency) int {
		return strings.Compare(a.Name(), b.Name())
	})
	for i := 1; i < len(list); i++ {
		if list[i].Name() == list[i-1].Name() {
			return &SpecError{Field: name, Value: quoted(list[i].Name()), Reason: "must name each job once"}
		}
	}
	return nil
}

// Resolved returns the spec with other jobs to wait for: those of before, as the owner's broker has found them. The
// error is a *SpecError.
func (s Spec) Resolved(after []Dependency) (Spec, error) {
	s.After = after
	if err := uniqueAfter("after", s.After); err != nil {
		return s, err
	}
	return s, s.CheckSize()
}

// appendAfter writes what a job waits for.
func appendAfter(b []byte, list []Dependency) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"job":`...), list[i].Name())
		b = append(appendString(append(b, `,"when":`...), list[i].When.String()), '}')
	}
	return append(b, ']')
}
