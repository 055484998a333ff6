package jobspec

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
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
	// Parallel is how many tasks of the job may run at a time, 0 = as many as there is room for.
	Parallel uint32
	Priority int32 // higher first, within the owner
	Labels   map[string]string
	Sites    SpecSites
	// Selectors must all be satisfied by a machine's labels. Each is written as command.Selector
	// writes it; they are sorted and unique.
	Selectors []string
	// Network: the tasks need one. At other sites they run only where others' tasks have one.
	Network bool
	// Inputs are in a task's work folder when it begins, and Outputs are kept of what it leaves there.
	Inputs  []Input
	Outputs Outputs
	// Notify is who is told of the job's end, at most MaxHooks. The owner's broker keeps it: no payload has it.
	Notify []Hook
	// After are the jobs of the same owner that this one waits for, by name; each is named once.
	After []Dependency
	// FileBytes is how many bytes the inputs of one task have at most. The owner's broker sets it once it knows, before
	// it makes a JobSpec; no text has it, and it is nothing of what the spec means.
	FileBytes int64
}

// SpecResources is what each task of the job needs.
type SpecResources struct {
	CPU    int64 // whole cores, ≥ 1, exclusive
	Memory int64 // MiB, 0 = no limit
	GPU    int64
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

// Sealer makes a job's payload of what all members may read and of what only those may who run the job.
type Sealer interface {
	Seal(public, text []byte) []byte
}

// Opener takes a payload apart. The text is nil if it may not read that.
type Opener interface {
	Open(payload []byte) (public, text []byte, err error)
}

// JobSpec returns the job as the state machine sees it, under its owner's number. createdMs is the
// time in unix milliseconds, for people to read.
func (s Spec) JobSpec(owner string, num uint64, createdMs int64, by Sealer) command.JobSpec {
	return s.jobSpec(owner, num, createdMs, by.Seal(s.publicText(), s.appendSealed(nil)))
}

func (s Spec) jobSpec(owner string, num uint64, createdMs int64, payload []byte) command.JobSpec {
	return command.JobSpec{
		Num: num, Count: s.Count,
		Need: command.Resources{
			MilliCPU: s.Resources.CPU * 1000, MemMiB: s.Resources.Memory, GPU: s.Resources.GPU,
		},
		Image: s.Image != "", Delivers: s.Outputs.Wanted(), Gated: s.Gated(), TimeoutMs: s.Timeout.Milliseconds(),
		MaxAttempts: s.Retry.MaxAttempts, OnLoss: s.Retry.OnLoss, Priority: s.Priority,
		Only: slices.Clone(s.Sites.Only), Not: slices.Clone(s.Sites.Not),
		Selectors: s.allSelectors(owner), CreatedMs: createdMs, Payload: payload,
	}
}

// allSelectors returns the job's selectors and those that say to the state that it needs a network, and room for files.
func (s Spec) allSelectors(owner string) []string {
	list := slices.Clone(s.Selectors)
	if s.Network {
		list = append(list, command.NetworkSelector(owner))
	}
	if s.HasFiles() {
		list = append(list, command.FilesSelector(owner, s.FileBytes+s.Outputs.MaxBytes))
	}
	slices.Sort(list)
	return list
}

// HasFiles reports whether files travel with the job's tasks, to them or from them.
func (s *Spec) HasFiles() bool { return len(s.Inputs) > 0 || s.Outputs.Wanted() }

// Meaning returns a hash of everything that the spec says, defaults included. It is equal for two
// documents that differ only in whitespace, order or defaults that one of them spells out, and for a spec whose inputs
// a broker has looked up; but for one by a URL without a hash, whose hash that broker has set.
func (s Spec) Meaning() [32]byte {
	s.FileBytes, s.Inputs = 0, slices.Clone(s.Inputs)
	for i := range s.Inputs {
		s.Inputs[i].Blob.Size = UnknownSize
	}
	submit := command.Submit{Jobs: []command.JobSpec{s.jobSpec("", 0, 0, s.appendSealed(s.publicText()))}}
	return s.meaningOf(sha256.Sum256(command.Append(nil, command.Command{Body: &submit})))
}

// SpecOf is the inverse of JobSpec, as far as by may read the payload. On a payload that JobSpec did not write it
// returns an error and never panics.
func SpecOf(js command.JobSpec, by Opener) (Spec, error) {
	public, text, err := by.Open(js.Payload)
	if err != nil {
		return Spec{}, fmt.Errorf("read job payload: %w", err)
	}
	s, err := ReadTexts(public, text)
	if err != nil {
		return Spec{}, err
	}
	return s, s.shape(js)
}

// shape fills in what the state's fields say.
func (s *Spec) shape(js command.JobSpec) error {
	if !slices.Contains([]command.OnLoss{command.Fenced, command.Immediate, command.Never}, js.OnLoss) {
		return fmt.Errorf("read job: on_loss %d is unknown", js.OnLoss)
	}
	s.Count, s.Priority = js.Count, js.Priority
	if s.Indices.Len() != js.Count {
		s.Indices = Indices{} // as in NumberingOf
	}
	s.Timeout = time.Duration(js.TimeoutMs) * time.Millisecond
	s.Resources = SpecResources{CPU: js.Need.MilliCPU / 1000, Memory: js.Need.MemMiB, GPU: js.Need.GPU}
	s.Retry.MaxAttempts, s.Retry.OnLoss = js.MaxAttempts, js.OnLoss
	s.Sites = SpecSites{Only: slices.Clone(js.Only), Not: slices.Clone(js.Not)}
	s.Selectors = slices.DeleteFunc(slices.Clone(js.Selectors), isImplied)
	if len(s.Selectors) == 0 {
		s.Selectors = nil
	}
	return nil
}

// isImplied reports whether a selector is one that JobSpec adds.
func isImplied(text string) bool {
	return command.IsNetworkSelector(text) || command.IsFilesSelector(text)
}

// The fields of each text.
var (
	publicFields = fieldBits("indices", "labels", "image", "network")
	sealedFields = fieldBits("name", "command", "env", "inputs", "outputs", "after", "retry", "parallel")
)

// jobBits are those of all fields of a job.
const jobBits = 1<<len(jobFields) - 1

func fieldBits(names ...string) (bits uint64) {
	for _, name := range names {
		bits |= 1 << slices.Index(jobFields[:], name)
	}
	return bits
}

// ReadTexts reads the part of a spec that a payload's texts hold; a nil text says nothing. Either has its own fields
// only: what is sealed cannot contradict what others go by.
func ReadTexts(public, text []byte) (Spec, error) {
	p := specParser{jsonScanner: jsonScanner{src: string(public)}, spec: DefaultSpec()}
	err := p.document()
	if err == nil && p.seen&^publicFields != 0 {
		err = &SpecError{Field: "body", Reason: "has fields among its public ones that are to be sealed"}
	}
	if err == nil && text != nil {
		p.jsonScanner, p.seen = jsonScanner{src: string(text)}, 0
		err = p.document()
	}
	// The bits behind are those of fields in objects.
	if err == nil && text != nil && p.seen&jobBits&^sealedFields != 0 {
		err = &SpecError{Field: "body", Reason: "has fields among its sealed ones that are to be public"}
	}
	if err == nil && text != nil {
		err = p.spec.checkFiles()
	}
	if err != nil {
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

// textWriter writes a text of a payload in canonical form: fields in fixed order, keys sorted, empty fields omitted.
type textWriter struct {
	b     []byte
	start int
}

func beginText(b []byte) textWriter { return textWriter{append(b, '{'), len(b) + 1} }

func (w *textWriter) field(name string) {
	if len(w.b) > w.start {
		w.b = append(w.b, ',')
	}
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

func (w *textWriter) end() []byte { return append(w.b, '}') }

// publicText returns what the state machine never reads, and every member may.
func (s Spec) publicText() []byte {
	w := beginText(nil)
	if s.Indices.Len() > 0 {
		w.field("indices")
		w.b = appendString(w.b, s.Indices.String())
	}
	if len(s.Labels) > 0 {
		w.field("labels")
		w.b = appendMap(w.b, s.Labels)
	}
	if s.Image != "" {
		w.field("image")
		w.b = appendString(w.b, s.Image)
	}
	if s.Network {
		w.field("network")
		w.b = append(w.b, "true"...)
	}
	return w.end()
}

// appendSealed writes what only the owner and the sites that run the job may read.
func (s Spec) appendSealed(b []byte) []byte {
	w := beginText(b)
	if s.Name != "" {
		w.field("name")
		w.b = appendString(w.b, s.Name)
	}
	if len(s.Command) > 0 {
		w.field("command")
		w.b = appendStrings(w.b, s.Command)
	}
	if len(s.Env) > 0 {
		w.field("env")
		w.b = appendMap(w.b, s.Env)
	}
	if len(s.Inputs) > 0 {
		w.field("inputs")
		w.b = appendInputs(w.b, s.Inputs)
	}
	if s.Outputs.Wanted() {
		w.field("outputs")
		w.b = appendOutputs(w.b, &s.Outputs)
	}
	if len(s.After) > 0 {
		w.field("after")
		w.b = appendAfter(w.b, s.After)
	}
	if s.Retry.hasRules() {
		w.field("retry")
		w.b = appendRetry(w.b, &s.Retry)
	}
	if s.Parallel > 0 {
		w.field("parallel")
		w.b = strconv.AppendUint(w.b, uint64(s.Parallel), 10)
	}
	return w.end()
}
