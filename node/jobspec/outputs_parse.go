package jobspec

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/files"
)

// MaxOutputGlobs bounds the globs of a job's outputs: those that must match, and the others.
const MaxOutputGlobs = 256

var outputFields = [...]string{"paths", "optional", "max", "when"}

// whenNames are the contract's words, by executor.When.
var whenNames = [...]string{executor.WhenAlways: "always", executor.WhenSuccess: "success"}

// WhenNames returns the words that outputs.when may be.
func WhenNames() []string { return slices.Clone(whenNames[:]) }

// WhenName returns the contract's word for Outputs.When.
func (o *Outputs) WhenName() string { return whenNames[o.When] }

// output reads one field of the outputs.
func (p *specParser) output(key string) error {
	if err := p.known(outputFields[:], outputBits, "outputs.", key); err != nil {
		return err
	}
	o := &p.spec.Outputs
	switch key {
	case "paths":
		return p.globs("outputs.paths", &o.Paths)
	case "optional":
		return p.globs("outputs.optional", &o.Optional)
	case "max":
		return p.bytes("outputs.max", &o.MaxBytes)
	default:
		return p.when("outputs.when", &o.When)
	}
}

// outputs reads what a job's tasks are to leave. Without a glob that is nothing, however much it may be.
func (p *specParser) outputs(name string) error {
	o := &p.spec.Outputs
	if err := p.nested(name, p.output); err != nil {
		return err
	}
	switch {
	case len(o.Paths)+len(o.Optional) > MaxOutputGlobs:
		return &SpecError{Field: name, Reason: fmt.Sprintf("has %d globs; at most %d: name a folder, with a slash at its end",
			len(o.Paths)+len(o.Optional), MaxOutputGlobs)}
	case !o.Wanted() && (o.MaxBytes != 0 || o.When != executor.WhenAlways):
		return &SpecError{Field: name, Reason: `names no files: give paths such as ["out/*.csv"]`}
	case !o.Wanted():
		*o = Outputs{}
	case o.MaxBytes == 0:
		o.MaxBytes = DefaultOutputBytes
	}
	return nil
}

// globs reads a list of patterns. Their order has no meaning.
func (p *specParser) globs(name string, to *[]string) error {
	if err := p.strings(name, to); err != nil {
		return err
	}
	for i, text := range *to {
		if _, err := executor.ParseGlob(text); err != nil {
			return &SpecError{Field: fmt.Sprintf("%s.%d", name, i), Reason: err.Error()}
		}
	}
	slices.Sort(*to)
	if *to = slices.Compact(*to); len(*to) == 0 {
		*to = nil
	}
	return nil
}

// bytes reads a quantity of bytes.
func (p *specParser) bytes(name string, to *int64) error {
	var text string
	if p.null() {
		return nil
	}
	if p.peek() != '"' {
		return p.wrong(name, `a quantity such as "256Mi" or "2Gi"`)
	}
	if err := p.text(name, &text); err != nil {
		return err
	}
	n, err := ParseBytes(text)
	if err != nil {
		return &SpecError{Field: name, Value: quoted(text), Reason: err.Error()}
	}
	if n < 1 || n > files.MaxTask {
		return &SpecError{Field: name, Value: quoted(text), Reason: "must be from 1 byte to " + FormatBytes(files.MaxTask)}
	}
	*to = n
	return nil
}

func (p *specParser) when(name string, to *executor.When) error {
	text := whenNames[executor.WhenAlways]
	if err := p.text(name, &text); err != nil {
		return err
	}
	i := slices.Index(whenNames[:], text)
	if i < 0 {
		return &SpecError{Field: name, Value: quoted(text), Reason: `must be "always" or "success"`}
	}
	*to = executor.When(i)
	return nil
}
