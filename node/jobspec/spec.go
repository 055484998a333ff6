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

// Spec is a user's job (contract: POST /v1/jobs) with its defaults filled in. A Spec that ParseSpec
// returned is valid; JobSpec relies on that.
type Spec struct {
	Name    string
	Command []string
	Image   string
	Env     map[string]string
	Count   uint32
	// Indices number the tasks if they are not empty; otherwise the numbers are 0 to Count-1.
	// Invariant: empty, or Count of them.
	Indices   Indices
	Timeout   time.Duration // whole milliseconds, 0 = none
	Resources SpecResources
	Retry     SpecRetry
	Priority  int32 // higher first, within the owner
	Labels    map[string]string
	Sites     SpecSites
	// Selectors must all be satisfied by a machine's labels. Each is written as command.Selector
	// writes it; they are sorted and unique.
	Selectors []string
	// Network: the tasks need one. At other sites they run only where others' tasks have one.
	Network bool
}

// SpecResources is what each task of the job needs.
type SpecResources struct {
	CPU    int64 // whole cores, ≥ 1, exclusive
	Memory int64 // MiB, 0 = no limit
	GPU    int64
}

// SpecRetry says how often a failed task is tried and what the loss of an attempt means.
type SpecRetry struct {
	MaxAttempts uint32 // ≥ 1; failures count, losses do not
	OnLoss      command.OnLoss
}

// SpecSites restricts where tasks may run; both sorted and unique.
type SpecSites struct {
	Only, Not []string
}

// DefaultSpec returns a spec with every default of the contract and no command.
func DefaultSpec() Spec {
	return Spec{Count: 1, Resources: SpecResources{CPU: 1}, Retry: SpecRetry{MaxAttempts: 1}}
}

// onLossNames are the contract's words, by command.OnLoss.
var onLossNames = [...]string{command.Fenced: "fenced", command.Immediate: "immediate", command.Never: "never"}

// OnLossNames returns the words that on_loss may be.
func OnLossNames() []string { return slices.Clone(onLossNames[:]) }

// LossName returns the contract's word for OnLoss.
func (r SpecRetry) LossName() string { return onLossNames[r.OnLoss] }

// JobSpec returns the job as the state machine sees it, under its owner's number. createdMs is the
// time in unix milliseconds, for people to read.
func (s Spec) JobSpec(owner string, num uint64, createdMs int64) command.JobSpec {
	return command.JobSpec{
		Num: num, Count: s.Count,
		Need: command.Resources{
			MilliCPU: s.Resources.CPU * 1000, MemMiB: s.Resources.Memory, GPU: s.Resources.GPU,
		},
		Image: s.Image != "", TimeoutMs: s.Timeout.Milliseconds(),
		MaxAttempts: s.Retry.MaxAttempts, OnLoss: s.Retry.OnLoss, Priority: s.Priority,
		Only: slices.Clone(s.Sites.Only), Not: slices.Clone(s.Sites.Not),
		Selectors: s.allSelectors(owner), CreatedMs: createdMs, Payload: s.appendPayload(nil),
	}
}

// allSelectors returns the job's selectors and, if it needs a network, the one that says so to the state.
func (s Spec) allSelectors(owner string) []string {
	list := slices.Clone(s.Selectors)
	if s.Network {
		list = append(list, command.NetworkSelector(owner))
		slices.Sort(list)
	}
	return list
}

// Meaning returns a hash of everything that the spec says, defaults included. It is equal for two
// documents that differ only in whitespace, order or defaults that one of them spells out.
func (s Spec) Meaning() [32]byte {
	submit := command.Submit{Jobs: []command.JobSpec{s.JobSpec("", 0, 0)}}
	return sha256.Sum256(command.Append(nil, command.Command{Body: &submit}))
}

// SpecOf is the inverse of JobSpec. On a payload that JobSpec did not write it returns an error and
// never panics.
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
		s.Indices = Indices{} // as in NumberingOf
	}
	s.Timeout = time.Duration(js.TimeoutMs) * time.Millisecond
	s.Resources = SpecResources{CPU: js.Need.MilliCPU / 1000, Memory: js.Need.MemMiB, GPU: js.Need.GPU}
	s.Retry = SpecRetry{MaxAttempts: js.MaxAttempts, OnLoss: js.OnLoss}
	s.Sites = SpecSites{Only: slices.Clone(js.Only), Not: slices.Clone(js.Not)}
	s.Selectors = slices.DeleteFunc(slices.Clone(js.Selectors), command.IsNetworkSelector)
	if len(s.Selectors) == 0 {
		s.Selectors = nil
	}
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

// payloadLabels is how a payload with labels begins: they come first (after indices), so that a
// filtered list reads nothing else of a job.
const payloadLabels = `{"labels":{`

// MatchLabels reports whether a payload that JobSpec wrote has all labels of want.
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

// afterIndices returns a payload without the indices that it may begin with, nil if it is malformed.
func afterIndices(payload []byte) []byte {
	if !bytes.HasPrefix(payload, []byte(PayloadIndices)) {
		return payload
	}
	if _, rest, ok := bytes.Cut(payload[len(PayloadIndices):], []byte(`",`)); ok {
		return append([]byte{'{'}, rest...)
	}
	return nil
}

// appendPayload writes the fields that the state machine never reads, in canonical form: fields in
// fixed order, keys sorted, empty fields omitted.
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
	if s.Network {
		field("network")
		b = append(b, "true"...)
	}
	return append(b, '}')
}
