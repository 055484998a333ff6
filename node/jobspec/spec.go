package jobspec

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Spec is a user's job (contract: POST /v1/jobs), after defaults. A Spec that
// ParseSpec returned is valid; JobSpec assumes it.
type Spec struct {
	Name    string
	Command []string
	Image   string
	Env     map[string]string
	Count   uint32
	// Indices, if not empty, are what the tasks are numbered by instead of 0 to
	// Count-1. Invariant: empty, or Count of them.
	Indices   Indices
	Timeout   time.Duration // whole milliseconds, 0 = none
	Resources SpecResources
	Retry     SpecRetry
	Priority  int32 // higher first, within the owner
	Labels    map[string]string
	Sites     SpecSites
	// Selectors are what a machine's labels must satisfy, all of them, each as
	// command.Selector writes it; sorted and unique.
	Selectors []string
}

// SpecResources is what each task of the job needs.
type SpecResources struct {
	CPU    int64 // whole cores, ≥ 1, exclusive
	Memory int64 // MiB, 0 = no limit
	GPU    int64
}

// SpecRetry says how often a failed task is tried and what a loss means.
type SpecRetry struct {
	MaxAttempts uint32 // ≥ 1; failures count, losses do not
	OnLoss      command.OnLoss
}

// SpecSites restricts where tasks may run; both sorted and unique.
type SpecSites struct {
	Only, Not []string
}

// DefaultSpec is a spec with every default of the contract and no command.
func DefaultSpec() Spec {
	return Spec{Count: 1, Resources: SpecResources{CPU: 1}, Retry: SpecRetry{MaxAttempts: 1}}
}

// onLossNames are the words of the contract, by command.OnLoss.
var onLossNames = [...]string{command.Fenced: "fenced", command.Immediate: "immediate", command.Never: "never"}

// OnLossNames returns the words that on_loss may be.
func OnLossNames() []string { return slices.Clone(onLossNames[:]) }

// LossName is OnLoss in the contract's word.
func (r SpecRetry) LossName() string { return onLossNames[r.OnLoss] }

// JobSpec is the job as the order sees it, under its owner's number.
// createdMs is unix milliseconds, for people.
func (s Spec) JobSpec(num uint64, createdMs int64) command.JobSpec {
	return command.JobSpec{
		Num: num, Count: s.Count,
		Need: command.Resources{
			MilliCPU: s.Resources.CPU * 1000, MemMiB: s.Resources.Memory, GPU: s.Resources.GPU,
		},
		Image: s.Image != "", TimeoutMs: s.Timeout.Milliseconds(),
		MaxAttempts: s.Retry.MaxAttempts, OnLoss: s.Retry.OnLoss, Priority: s.Priority,
		Only: slices.Clone(s.Sites.Only), Not: slices.Clone(s.Sites.Not),
		Selectors: slices.Clone(s.Selectors), CreatedMs: createdMs, Payload: s.appendPayload(nil),
	}
}

// Meaning is a hash of all that the spec says, defaults included: equal for two
// documents that differ in whitespace, order or what goes without saying.
func (s Spec) Meaning() [32]byte {
	submit := command.Submit{Jobs: []command.JobSpec{s.JobSpec(0, 0)}}
	return sha256.Sum256(command.Append(nil, command.Command{Body: &submit}))
}

// SpecOf is the inverse of JobSpec. It fails, never panics, on a payload that
// JobSpec did not write.
func SpecOf(js command.JobSpec) (Spec, error) {
	s, err := ReadPayload(js.Payload)
	if err != nil {
		return Spec{}, err
	}
	if !slices.Contains([]command.OnLoss{command.Fenced, command.Immediate, command.Never}, js.OnLoss) {
		return Spec{}, fmt.Errorf("read job: on_loss %d is unknown", js.OnLoss)
	}
	s.Count, s.Priority = js.Count, js.Priority
	if s.Indices.Len() != js.Count {
		s.Indices = Indices{} // as NumberingOf has it
	}
	s.Timeout = time.Duration(js.TimeoutMs) * time.Millisecond
	s.Resources = SpecResources{CPU: js.Need.MilliCPU / 1000, Memory: js.Need.MemMiB, GPU: js.Need.GPU}
	s.Retry = SpecRetry{MaxAttempts: js.MaxAttempts, OnLoss: js.OnLoss}
	s.Sites = SpecSites{Only: slices.Clone(js.Only), Not: slices.Clone(js.Not)}
	s.Selectors = slices.Clone(js.Selectors)
	return s, nil
}

// ReadPayload reads the part of a spec that a payload holds.
func ReadPayload(payload []byte) (Spec, error) {
	p := specParser{jsonScanner: jsonScanner{src: string(payload)}, spec: DefaultSpec()}
	if err := p.document(); err != nil {
		return Spec{}, fmt.Errorf("read job payload: %w", err)
	}
	return p.spec, nil
}

// payloadLabels opens a payload that has labels: they come first (but for indices),
// so that a filtered list reads nothing else of a job.
const payloadLabels = `{"labels":{`

// MatchLabels reports whether a payload that JobSpec wrote holds all of want.
func MatchLabels(payload []byte, want map[string]string) bool {
	if len(want) == 0 {
		return true
	}
	payload = afterIndices(payload)
	if !strings.HasPrefix(string(payload[:min(len(payload), len(payloadLabels))]), payloadLabels) {
		return false
	}
	p := specParser{jsonScanner: jsonScanner{src: string(payload), pos: len(payloadLabels) - 1}}
	labels, err := p.stringMap("labels", nil)
	if err != nil {
		return false
	}
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// afterIndices returns a payload without the indices that it may begin with.
func afterIndices(payload []byte) []byte {
	if !bytes.HasPrefix(payload, []byte(PayloadIndices)) {
		return payload
	}
	if _, rest, ok := bytes.Cut(payload[len(PayloadIndices):], []byte(`",`)); ok {
		return append([]byte{'{'}, rest...)
	}
	return nil
}

// appendPayload writes what the order never looks into, canonically: fixed
// field order, sorted keys, empty fields left out.
func (s Spec) appendPayload(b []byte) []byte {
	b = append(b, '{')
	start := len(b)
	field := func(name string) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"', ':')
	}
	if s.Indices.Len() > 0 {
		field("indices")
		b = appendString(b, s.Indices.String())
	}
	if len(s.Labels) > 0 {
		field("labels")
		b = appendMap(b, s.Labels)
	}
	if s.Name != "" {
		field("name")
		b = appendString(b, s.Name)
	}
	if len(s.Command) > 0 {
		field("command")
		b = appendStrings(b, s.Command)
	}
	if s.Image != "" {
		field("image")
		b = appendString(b, s.Image)
	}
	if len(s.Env) > 0 {
		field("env")
		b = appendMap(b, s.Env)
	}
	return append(b, '}')
}
