package jobspec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Bounds of a spec in addition to those of the state (fsm/command's limits).
const (
	MaxSpecBytes = 1 << 20 // of one job's JSON text
	MaxLabels    = 64      // labels of a job
	MaxLabelKey  = 63      // bytes
	MaxLabelText = 255     // bytes of a label's value, and of a job's name
	MaxSiteNames = 256     // names in each of sites.only and sites.not
)

// SpecError says what is wrong with a job's text, in one line.
type SpecError struct {
	Malformed bool   // not a JSON document at all (400); false: not a valid job (422)
	Field     string // "resources.cpu", "env.PATH"; "body" for the whole
	Value     string // shortened, as the text has it; "" when there is none
	Reason    string // what is wrong, and what would be right
}

// Error implements error.
func (e *SpecError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s", e.Field, e.Reason)
	}
	return fmt.Sprintf("%s: %s (got %s)", e.Field, e.Reason, e.Value)
}

// ParseSpec reads one job, strictly: unknown and repeated fields, trailing data, wrong types and
// numbers out of bounds are errors; null means the default. The error is a *SpecError.
func ParseSpec(data []byte) (Spec, error) {
	if len(data) > MaxSpecBytes {
		return Spec{}, &SpecError{Field: "body", Reason: fmt.Sprintf(
			"has %d bytes; a job's text has at most %d", len(data), MaxSpecBytes)}
	}
	p := specParser{jsonScanner: jsonScanner{src: string(data)}, spec: DefaultSpec()}
	if !utf8.ValidString(p.src) {
		return Spec{}, &SpecError{Malformed: true, Field: "body", Reason: "is not valid UTF-8"}
	}
	if err := p.document(); err != nil {
		return Spec{}, err
	}
	if err := p.check(); err != nil {
		return Spec{}, err
	}
	return p.spec, nil
}

// specParser fills a spec from the text.
type specParser struct {
	jsonScanner
	spec Spec
	seen uint64 // a bit for each field read, see known
	in   *readInput
}

// document reads the whole text: one object and nothing after it.
func (p *specParser) document() error {
	if p.peek() != '{' {
		if len(p.src) == p.pos {
			return &SpecError{Malformed: true, Field: "body", Reason: "is empty; expected a JSON object"}
		}
		if err := p.skip(0); err != nil {
			return err
		}
		return &SpecError{Field: "body", Value: shorten(p.src), Reason: "must be a JSON object"}
	}
	if err := p.object(p.field); err != nil {
		return err
	}
	if p.peek(); p.pos != len(p.src) {
		return p.malformed("unexpected data after the job")
	}
	return nil
}

// The names of fields, by object; a field's index here gives its bit in seen.
var (
	jobFields = [...]string{
		"name", "command", "image", "env", "count", "timeout", "resources", "retry", "priority", "labels",
		"sites", "selectors", "indices", "network", "inputs", "outputs", "notify", "after", "parallel",
	}
	resourceFields = [...]string{"cpu", "memory", "gpu"}
	retryFields    = [...]string{"max_attempts", "on_loss", "backoff", "backoff_max", "only_on", "not_on"}
	siteFields     = [...]string{"only", "not"}
)

// The first bits in seen of the nested objects.
const (
	resourceBits = len(jobFields)
	retryBits    = resourceBits + len(resourceFields)
	siteBits     = retryBits + len(retryFields)
	outputBits   = siteBits + len(siteFields)
)

// known records that a field was read. It refuses a field that is not one of names, or is there twice.
// The bits of names begin at first.
func (p *specParser) known(names []string, first int, prefix, key string) error {
	bit, err := knownIn(names, uint32(p.seen>>first), prefix, key)
	p.seen |= uint64(bit) << first
	return err
}

// knownIn returns the bit of a field in an object's own bits, of which some have been seen.
func knownIn(names []string, seen uint32, prefix, key string) (bit uint32, err error) {
	i := slices.Index(names, key)
	if i < 0 {
		return 0, &SpecError{
			Field:  prefix + shorten(key),
			Reason: "is not a field of a job; known here: " + strings.Join(names, ", "),
		}
	}
	if bit = 1 << i; seen&bit != 0 {
		return 0, &SpecError{Malformed: true, Field: prefix + key, Reason: "stands twice in the object"}
	}
	return bit, nil
}

// field reads one top-level field's value.
func (p *specParser) field(key string) error {
	if err := p.known(jobFields[:], 0, "", key); err != nil {
		return err
	}
	s := &p.spec
	switch key {
	case "name":
		return p.text(key, &s.Name)
	case "command":
		return p.strings(key, &s.Command)
	case "image":
		return p.text(key, &s.Image)
	case "env":
		return p.mapping(key, &s.Env, checkEnv)
	case "count":
		return integer(p, key, &s.Count, 1, command.MaxCount)
	case "timeout":
		return p.timeout(key)
	case "resources":
		return p.nested(key, p.resource)
	case "retry":
		return p.nested(key, p.retry)
	case "priority":
		return integer(p, key, &s.Priority, -command.MaxPriority, command.MaxPriority)
	case "labels":
		return p.mapping(key, &s.Labels, checkLabel)
	case "selectors":
		return p.selectors(key)
	case "indices":
		return p.indices(key)
	case "network":
		return p.boolean(key, &s.Network)
	case "inputs":
		return p.inputs(key)
	case "outputs":
		return p.outputs(key)
	case "notify":
		return p.notify(key)
	case "after":
		return p.after(key)
	case "parallel":
		return integer(p, key, &s.Parallel, 1, command.MaxCount)
	default:
		return p.nested(key, p.site)
	}
}

func (p *specParser) resource(key string) error {
	if err := p.known(resourceFields[:], resourceBits, "resources.", key); err != nil {
		return err
	}
	r := &p.spec.Resources
	switch key {
	case "cpu":
		return integer(p, "resources.cpu", &r.CPU, 1, command.MaxMilliCPU/1000)
	case "memory":
		return p.memory("resources.memory")
	default:
		return integer(p, "resources.gpu", &r.GPU, 0, command.MaxGPU)
	}
}

func (p *specParser) retry(key string) error {
	if err := p.known(retryFields[:], retryBits, "retry.", key); err != nil {
		return err
	}
	name, r := "retry."+key, &p.spec.Retry
	switch key {
	case "on_loss":
		return p.onLoss(name)
	case "backoff":
		return p.backoff(name, &r.Backoff)
	case "backoff_max":
		return p.backoff(name, &r.BackoffMax)
	case "only_on":
		return p.exitCodes(name, &r.OnlyOn)
	case "not_on":
		return p.exitCodes(name, &r.NotOn)
	}
	return integer(p, name, &r.MaxAttempts, 1, command.MaxAttempts)
}

func (p *specParser) site(key string) error {
	if err := p.known(siteFields[:], siteBits, "sites.", key); err != nil {
		return err
	}
	if key == "only" {
		return p.siteNames("sites.only", &p.spec.Sites.Only)
	}
	return p.siteNames("sites.not", &p.spec.Sites.Not)
}

// wrong returns the error for a value of another type or form; malformed text is reported as malformed.
func (p *specParser) wrong(field, want string) error {
	p.peek()
	from := p.pos
	if err := p.skip(0); err != nil {
		return err
	}
	return &SpecError{Field: field, Value: shorten(p.src[from:p.pos]), Reason: "must be " + want}
}

func (p *specParser) nested(name string, each func(string) error) error {
	if p.null() {
		return nil
	}
	if p.peek() != '{' {
		return p.wrong(name, "an object")
	}
	return p.object(each)
}

func (p *specParser) text(name string, to *string) error {
	if p.null() {
		return nil
	}
	if p.peek() != '"' {
		return p.wrong(name, "a string")
	}
	s, err := p.str()
	*to = s
	return err
}

func (p *specParser) strings(name string, to *[]string) error {
	if p.null() {
		return nil
	}
	if p.peek() != '[' {
		return p.wrong(name, "a list of strings")
	}
	list := make([]string, 0, 4)
	err := p.array(func() error {
		if p.peek() != '"' {
			return p.wrongElement(name)
		}
		s, err := p.str()
		list = append(list, s)
		return err
	})
	*to = list
	return err
}

// wrongElement returns the error for an element that is no string; of a number, true or false,
// which YAML reads from bare words, it says how to write it.
func (p *specParser) wrongElement(name string) error {
	bare := strings.IndexByte("-0123456789tf", p.peek()) >= 0
	err := p.wrong(name, "a list of strings")
	if wrong, ok := errors.AsType[*SpecError](err); ok && bare && !wrong.Malformed {
		wrong.Reason += fmt.Sprintf(": quote this one, as %q", wrong.Value)
	}
	return err
}

func (p *specParser) mapping(name string, to *map[string]string, check func(k, v string) string) error {
	if p.null() {
		return nil
	}
	m, err := p.stringMap(name, check)
	*to = m
	return err
}

// stringMap reads an object of strings; check returns why a pair is refused, "" if it is not.
func (p *specParser) stringMap(name string, check func(k, v string) string) (map[string]string, error) {
	if p.peek() != '{' {
		return nil, p.wrong(name, "an object of strings")
	}
	var m map[string]string
	err := p.object(func(key string) error {
		field := func() string { return name + "." + shorten(key) }
		if p.peek() != '"' {
			return p.wrong(field(), "a string")
		}
		value, err := p.str()
		if err != nil {
			return err
		}
		if _, twice := m[key]; twice {
			return &SpecError{Malformed: true, Field: field(), Reason: "stands twice in the object"}
		}
		if check != nil {
			if why := check(key, value); why != "" {
				return &SpecError{Field: field(), Value: quoted(value), Reason: why}
			}
		}
		if m == nil {
			m = make(map[string]string)
		}
		m[key] = value
		return nil
	})
	return m, err
}

// integer reads a whole number between lo and hi.
func integer[T int32 | int64 | uint32](p *specParser, name string, to *T, lo, hi int64) error {
	if p.null() {
		return nil
	}
	if c := p.peek(); c != '-' && (c < '0' || c > '9') {
		return p.wrong(name, fmt.Sprintf("a whole number from %d to %d", lo, hi))
	}
	text, whole, err := p.number()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if !whole || err != nil || n < lo || n > hi {
		return &SpecError{
			Field: name, Value: shorten(text),
			Reason: fmt.Sprintf("must be a whole number from %d to %d", lo, hi),
		}
	}
	*to = T(n)
	return nil
}

func (p *specParser) timeout(name string) error {
	var text string
	if p.null() {
		return nil
	}
	if p.peek() != '"' {
		return p.wrong(name, `a duration such as "90s" or "1h", or null for none`)
	}
	if err := p.text(name, &text); err != nil {
		return err
	}
	d, err := ParseDuration(text)
	if err != nil || d <= 0 || d > math.MaxInt64-time.Millisecond {
		return &SpecError{Field: name, Value: quoted(text), Reason: `must be a positive duration such as "90s" or "1h"`}
	}
	d = (d + time.Millisecond - 1).Truncate(time.Millisecond)
	if d.Milliseconds() > command.MaxTimeoutMs {
		return &SpecError{Field: name, Value: quoted(text), Reason: fmt.Sprintf(
			"must be at most %s", time.Duration(command.MaxTimeoutMs)*time.Millisecond)}
	}
	p.spec.Timeout = d
	return nil
}

func (p *specParser) memory(name string) error {
	const none = `, or "0" for no limit`
	var text string
	if p.null() {
		return nil
	}
	if p.peek() != '"' {
		return p.wrong(name, strings.TrimPrefix(wantMemory, "must be ")+none)
	}
	if err := p.text(name, &text); err != nil {
		return err
	}
	mib, err := ParseMemory(text)
	if err != nil {
		reason := strings.Replace(err.Error(), wantMemory, wantMemory+none, 1)
		return &SpecError{Field: name, Value: quoted(text), Reason: reason}
	}
	if mib > command.MaxMemMiB {
		return &SpecError{
			Field: name, Value: quoted(text),
			Reason: fmt.Sprintf("must be at most %dMi", int64(command.MaxMemMiB)),
		}
	}
	p.spec.Resources.Memory = mib
	return nil
}

// boolean reads true or false.
func (p *specParser) boolean(name string, to *bool) error {
	if p.null() {
		return nil
	}
	for word, value := range map[string]bool{"true": true, "false": false} {
		if p.peek(); strings.HasPrefix(p.src[p.pos:], word) {
			p.pos += len(word)
			*to = value
			return nil
		}
	}
	return p.wrong(name, "true or false")
}

func (p *specParser) onLoss(name string) error {
	text := onLossNames[command.Fenced]
	if err := p.text(name, &text); err != nil {
		return err
	}
	i := slices.Index(onLossNames[:], text)
	if i < 0 {
		return &SpecError{Field: name, Value: quoted(text), Reason: `must be "fenced", "immediate" or "never"`}
	}
	p.spec.Retry.OnLoss = command.OnLoss(i)
	return nil
}

func (p *specParser) siteNames(name string, to *[]string) error {
	if err := p.strings(name, to); err != nil {
		return err
	}
	if len(*to) > MaxSiteNames {
		return &SpecError{Field: name, Reason: fmt.Sprintf("names %d sites; at most %d", len(*to), MaxSiteNames)}
	}
	for _, site := range *to {
		if !command.ValidSite(site) {
			return &SpecError{
				Field: name, Value: quoted(site),
				Reason: "must hold site names: lower-case letters, digits and '-', at most 63",
			}
		}
	}
	slices.Sort(*to)
	*to = slices.Compact(*to)
	return nil
}

// indices reads the numbers of the tasks; an empty text counts as missing.
func (p *specParser) indices(name string) error {
	var text string
	if err := p.text(name, &text); err != nil || text == "" {
		return err
	}
	x, err := ParseIndices(text)
	if err != nil {
		return &SpecError{Field: name, Value: quoted(text), Reason: err.Error()}
	}
	p.spec.Indices = x
	return nil
}

// selectors reads the selectors that a machine's labels must satisfy, in any form that
// command.ParseSelector takes.
func (p *specParser) selectors(name string) error {
	to := &p.spec.Selectors
	if err := p.strings(name, to); err != nil {
		return err
	}
	for i, text := range *to {
		r, err := command.ParseSelector(text)
		if err != nil {
			return &SpecError{
				Field: fmt.Sprintf("%s.%d", name, i), Value: quoted(text), Reason: selectorReason(err),
			}
		}
		(*to)[i] = r.String()
	}
	slices.Sort(*to)
	if slices.ContainsFunc(*to, command.IsNetworkSelector) {
		return &SpecError{Field: name, Reason: "must not name " + command.NetworkLabel + `: say "network": true instead`}
	}
	if slices.ContainsFunc(*to, command.IsFilesSelector) {
		return &SpecError{Field: name, Reason: "must not name the labels of files: inputs and outputs say what is needed"}
	}
	if *to = slices.Compact(*to); len(*to) > command.MaxSelectors {
		return &SpecError{
			Field:  name,
			Reason: fmt.Sprintf("has %d selectors; at most %d", len(*to), command.MaxSelectors),
		}
	}
	return nil
}

// selectorReason returns why a text is not a selector, without repeating the text.
func selectorReason(err error) string {
	reason := strings.TrimPrefix(err.Error(), command.ErrOutOfBounds.Error()+": ")
	if _, after, ok := strings.Cut(reason, ": must be KEY"); ok {
		return "must be KEY" + after
	}
	return reason
}
