package jobspec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

const (
	// MaxCodeRanges bounds the exit codes and ranges in each of retry.only_on and retry.not_on.
	MaxCodeRanges = 64
	// MinBackoff bounds retry.backoff and retry.backoff_max, but for a backoff of 0, which is none.
	MinBackoff = 100 * time.Millisecond
	// MaxBackoff bounds both, too.
	MaxBackoff = 7 * 24 * time.Hour
	// DefaultBackoffMax is what retry.backoff_max is if it is not given and retry.backoff is not longer.
	DefaultBackoffMax = 10 * time.Minute
)

// SpecRetry says how often a failed task is tried, when and after which exit codes, and what the loss of an attempt
// means.
type SpecRetry struct {
	MaxAttempts uint32 // ≥ 1; failures count, losses do not
	OnLoss      command.OnLoss
	// Backoff is how long a task waits after its first failure, 0 = not at all. The pause doubles with each further
	// one, up to BackoffMax. Both are whole milliseconds. Invariant: BackoffMax ≥ Backoff, and 0 if that is.
	Backoff, BackoffMax time.Duration
	// OnlyOn are the exit codes after which a task is tried again, empty = all; NotOn those after which it is not.
	// Invariant: one of them is empty.
	OnlyOn, NotOn ExitCodes
}

// hasRules reports whether the owner's broker has to say when, or whether, a failed task is tried again.
func (r *SpecRetry) hasRules() bool { return r.Backoff > 0 || len(r.OnlyOn)+len(r.NotOn) > 0 }

// Again reports whether a task is tried again that failed with a code.
func (r *SpecRetry) Again(code int) bool {
	return (len(r.OnlyOn) == 0 || r.OnlyOn.Has(code)) && !r.NotOn.Has(code)
}

// Words says for people when a task is tried again, to stand behind the number of attempts; "" = always, at once.
func (r *SpecRetry) Words() string {
	words := ""
	if r.Backoff > 0 {
		words = fmt.Sprintf(", after %s, doubling up to %s", r.Backoff, r.BackoffMax)
	}
	if len(r.OnlyOn) > 0 {
		words += ", only on exit " + strings.Join(r.OnlyOn.Texts(), ", ")
	}
	if len(r.NotOn) > 0 {
		words += ", not on exit " + strings.Join(r.NotOn.Texts(), ", ")
	}
	return words
}

// ExitCodes is a set of exit codes: ranges that ascend, and neither touch nor overlap.
type ExitCodes []CodeRange

// CodeRange is the codes First to Last, both included.
type CodeRange struct{ First, Last uint8 }

// Has reports whether the set has a code.
func (x ExitCodes) Has(code int) bool {
	return slices.ContainsFunc(x, func(r CodeRange) bool { return int(r.First) <= code && code <= int(r.Last) })
}

// Texts returns the ranges as a spec has them, such as "2" and "64-78".
func (x ExitCodes) Texts() []string {
	var list []string
	for _, r := range x {
		list = append(list, r.String())
	}
	return list
}

// String returns the code, or the range as "64-78".
func (r CodeRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

const wantCodes = `must be an exit code from 0 to 255 or a range of them, such as "2" or "64-78"`

// parseCodes reads a code, or a range of them.
func parseCodes(text string) (r CodeRange, ok bool) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, bad := strconv.ParseUint(first, 10, 8)
	to, worse := strconv.ParseUint(last, 10, 8)
	return CodeRange{uint8(from), uint8(to)}, bad == nil && worse == nil && from <= to
}

// normal sorts the ranges, and joins those that touch.
func (x ExitCodes) normal() ExitCodes {
	slices.SortFunc(x, func(a, b CodeRange) int { return cmp.Compare(a.First, b.First) })
	var out ExitCodes
	for _, r := range x {
		if n := len(out); n > 0 && int(r.First) <= int(out[n-1].Last)+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// exitCodes reads codes and ranges; a single code may be a number.
func (p *specParser) exitCodes(name string, to *ExitCodes) error {
	if p.null() {
		return nil
	}
	if p.peek() != '[' {
		return p.wrong(name, `a list of exit codes and ranges, such as ["2","64-78"]`)
	}
	var list ExitCodes
	err := p.array(func() error {
		if len(list) == MaxCodeRanges {
			return &SpecError{Field: name, Reason: fmt.Sprintf("names more than %d codes and ranges: join them into longer ranges", MaxCodeRanges)}
		}
		r, err := p.exitCode(fmt.Sprintf("%s.%d", name, len(list)))
		list = append(list, r)
		return err
	})
	*to = list.normal()
	return err
}

func (p *specParser) exitCode(name string) (r CodeRange, err error) {
	p.peek()
	from := p.pos
	if err := p.skip(0); err != nil {
		return r, err
	}
	text := p.src[from:p.pos]
	r, ok := parseCodes(strings.Trim(text, `"`))
	if !ok {
		return r, &SpecError{Field: name, Value: shorten(text), Reason: wantCodes}
	}
	return r, nil
}

// backoff reads how long to wait, 0 = not at all.
func (p *specParser) backoff(name string, to *time.Duration) error {
	var text string
	if p.null() {
		return nil
	}
	if p.peek() != '"' {
		return p.wrong(name, `a duration such as "10s" or "5m"`)
	}
	if err := p.text(name, &text); err != nil {
		return err
	}
	d, err := ParseDuration(text)
	if err != nil || d != 0 && (d < MinBackoff || d > MaxBackoff) {
		return &SpecError{Field: name, Value: quoted(text), Reason: fmt.Sprintf(
			`must be a duration from %s to %dh, such as "10s", or "0s" for none`, MinBackoff, int(MaxBackoff.Hours()))}
	}
	*to = d.Truncate(time.Millisecond)
	return nil
}

// checkRetry checks what the fields of retry say together, and sets the default of backoff_max.
func (p *specParser) checkRetry() error {
	r := &p.spec.Retry
	switch {
	case len(r.OnlyOn) > 0 && len(r.NotOn) > 0:
		return &SpecError{Field: "retry", Reason: "must not have both only_on and not_on: give the one that is shorter"}
	case r.Backoff == 0 && r.BackoffMax > 0:
		return &SpecError{Field: "retry.backoff_max", Value: quoted(r.BackoffMax.String()), Reason: "needs retry.backoff, which it bounds"}
	case r.BackoffMax > 0 && r.BackoffMax < r.Backoff:
		return &SpecError{
			Field: "retry.backoff_max", Value: quoted(r.BackoffMax.String()),
			Reason: fmt.Sprintf("must not be shorter than retry.backoff, which is %s", r.Backoff),
		}
	case r.hasRules() && r.MaxAttempts == 1:
		return &SpecError{Field: "retry", Reason: "has backoff, only_on or not_on, and max_attempts 1: " +
			"nothing is tried again; give max_attempts of 2 or more"}
	case r.Backoff > 0 && r.BackoffMax == 0:
		r.BackoffMax = max(r.Backoff, DefaultBackoffMax)
	}
	return nil
}

// appendRetry writes what only the owner's broker goes by.
func appendRetry(b []byte, r *SpecRetry) []byte {
	w := beginText(b)
	if r.Backoff > 0 {
		w.field("backoff")
		w.b = appendString(w.b, r.Backoff.String())
		w.field("backoff_max")
		w.b = appendString(w.b, r.BackoffMax.String())
	}
	if len(r.OnlyOn) > 0 {
		w.field("only_on")
		w.b = appendStrings(w.b, r.OnlyOn.Texts())
	}
	if len(r.NotOn) > 0 {
		w.field("not_on")
		w.b = appendStrings(w.b, r.NotOn.Texts())
	}
	return w.end()
}

// Gated reports whether the owner's broker says of each task when it may begin: the job's tasks are held until then.
func (s *Spec) Gated() bool { return s.Retry.hasRules() || s.Parallel > 0 || s.HasEach() }

// HasEach reports whether each task waits for the task at its place of another job.
func (s *Spec) HasEach() bool {
	return slices.ContainsFunc(s.After, func(d Dependency) bool { return d.When == WhenEach })
}
