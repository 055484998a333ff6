package command

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of what an attempt may say of its outputs and of what it used.
const (
	// MaxManifest bounds the bytes of a manifest.
	MaxManifest = 32 << 20
	// MaxOutputBytes bounds the bytes of all files in a manifest: 4 TiB.
	MaxOutputBytes = 4 << 40
	// MaxPeakBytes bounds the memory, MaxProcessorMs the processor time of one attempt: as much as the largest task
	// needs, and its cores for the longest time.
	MaxPeakBytes   = MaxMemMiB << 20
	MaxProcessorMs = MaxTimeoutMs * (MaxMilliCPU / 1000)
	// MaxTransfer bounds the bytes that went to or from one attempt: 1 EiB.
	MaxTransfer = 1 << 60
)

// Output is what was collected of an attempt, by its manifest: the flat, sorted list of the files. The zero value
// means that nothing was collected.
type Output struct {
	Manifest [32]byte // its SHA-256. Invariant: zero means that the sizes are, too
	Size     int64    // bytes of the manifest, 1 … MaxManifest
	Bytes    int64    // of all files in it, 0 … MaxOutputBytes
}

// IsZero reports whether nothing was collected.
func (o *Output) IsZero() bool { return *o == Output{} }

// Measured is what an attempt used, as its site measured it. It has no effect on charges or decisions. The zero value
// means that nothing is known.
type Measured struct {
	PeakBytes        int64 // greatest memory; 0 = unknown
	UserMs, SystemMs int64 // processor time
	InBytes          int64 // to the attempt: inputs
	OutBytes         int64 // from it: outputs
	Source           MeasureSource
}

// IsZero reports whether nothing is known.
func (m *Measured) IsZero() bool { return *m == Measured{} }

// MeasureSource says what measured an attempt.
type MeasureSource uint8

// The sources. Numbers are never reused.
const (
	MeasuredUnknown    MeasureSource = iota
	MeasuredCgroup                   // of the attempt alone, complete
	MeasuredRusage                   // of the processes that were waited for
	MeasuredEngine                   // the container engine
	MeasuredKubernetes               // the cluster
	// LastMeasureSource is the greatest source.
	LastMeasureSource = MeasuredKubernetes
)

// UnmeasuredWhy says, for people, which attempts are MeasuredUnknown.
const UnmeasuredWhy = "lost, or in Kubernetes without a watchdog, as its sites' own tasks without files"

var measureNames = [...]string{"unknown", "cgroup", "rusage", "container-engine", "kubernetes"}

// String returns the source's name in the API.
func (s MeasureSource) String() string {
	if int(s) < len(measureNames) {
		return measureNames[s]
	}
	return measureNames[0]
}

// Deliver says what became of the outputs that the command's own site, the owner, was to fetch. For each attempt that
// its task is delivering, the task leaves that place; about any other nothing changes. All jobs must be its own.
type Deliver struct{ Attempts []Delivered }

// Delivered is one line of Deliver.
type Delivered struct {
	AttemptRef
	Outcome Delivery
	Detail  string // ≤ MaxDetail bytes: why not
}

// Delivery is what became of an attempt's outputs.
type Delivery uint8

// The deliveries.
const (
	// DeliveryOK: the owner has them. The task ends as succeeded.
	DeliveryOK Delivery = iota
	// DeliveryLost: they are gone, or their site was away for too long. It counts as a loss.
	DeliveryLost
	// DeliveryFailed: one that the job requires is missing, or they are too large. It counts as a failure.
	DeliveryFailed
)

// Validate checks the bounds.
func (b *Deliver) Validate() error {
	if err := within("attempts", int64(len(b.Attempts)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if err := firstError(
			a.AttemptRef.Validate(),
			within("outcome", int64(a.Outcome), int64(DeliveryOK), int64(DeliveryFailed)),
			within("bytes of detail", int64(len(a.Detail)), 0, MaxDetail),
		); err != nil {
			return err
		}
	}
	return nil
}

func (o *Output) validate() error {
	if o.Manifest == ([32]byte{}) {
		if !o.IsZero() {
			return fmt.Errorf("%w: an output of %d bytes has no manifest", ErrOutOfBounds, o.Bytes)
		}
		return nil
	}
	return firstError(
		within("bytes of the manifest", o.Size, 1, MaxManifest),
		within("bytes of outputs", o.Bytes, 0, MaxOutputBytes),
	)
}

func (m *Measured) validate() error {
	return firstError(
		within("peak_bytes", m.PeakBytes, 0, MaxPeakBytes),
		within("user_ms", m.UserMs, 0, MaxProcessorMs),
		within("system_ms", m.SystemMs, 0, MaxProcessorMs),
		within("in_bytes", m.InBytes, 0, MaxTransfer),
		within("out_bytes", m.OutBytes, 0, MaxTransfer),
		within("source", int64(m.Source), 0, int64(LastMeasureSource)),
	)
}

// What the flags of an Ended say: it ran; its output follows; what it used follows.
const (
	endedRan = 1 << iota
	endedOutput
	endedMeasured
)

func appendEndedFlags(dst []byte, a *Ended) []byte {
	flags := byte(0)
	if a.Ran {
		flags |= endedRan
	}
	if !a.Output.IsZero() {
		flags |= endedOutput
	}
	if !a.Measured.IsZero() {
		flags |= endedMeasured
	}
	return append(dst, flags)
}

// appendEndedFacts writes what appendEndedFlags has announced.
func appendEndedFacts(dst []byte, a *Ended) []byte {
	if o := &a.Output; !o.IsZero() {
		dst = appendInt(appendInt(append(dst, o.Manifest[:]...), o.Size), o.Bytes)
	}
	if m := &a.Measured; !m.IsZero() {
		for _, v := range [...]int64{m.PeakBytes, m.UserMs, m.SystemMs, m.InBytes, m.OutBytes, int64(m.Source)} {
			dst = appendInt(dst, v)
		}
	}
	return dst
}

// endedFacts reads what appendEndedFacts wrote.
func (r *reader) endedFacts(a *Ended, flags uint64) {
	if flags&endedOutput != 0 {
		o := &a.Output
		r.fixed("manifest's hash", o.Manifest[:])
		o.Size, o.Bytes = r.int("bytes of the manifest"), r.int("bytes of outputs")
		if r.err == nil && o.IsZero() {
			r.fail(nil, "an output of nothing is not written")
		}
	}
	if flags&endedMeasured != 0 {
		m := &a.Measured
		m.PeakBytes, m.UserMs, m.SystemMs = r.int("peak_bytes"), r.int("user_ms"), r.int("system_ms")
		m.InBytes, m.OutBytes = r.int("in_bytes"), r.int("out_bytes")
		m.Source = MeasureSource(r.uint("source", uint64(LastMeasureSource)))
		if r.err == nil && m.IsZero() {
			r.fail(nil, "what measures nothing is not written")
		}
	}
}

func appendDeliver(dst []byte, b *Deliver) []byte {
	dst = appendLen(dst, len(b.Attempts))
	for i := range b.Attempts {
		a := &b.Attempts[i]
		dst = append(appendAttempt(dst, &a.AttemptRef), byte(a.Outcome))
		dst = protowire.AppendString(dst, a.Detail)
	}
	return dst
}

func (r *reader) delivered(a *Delivered) {
	r.attempt(&a.AttemptRef)
	a.Outcome = Delivery(r.uint("outcome", uint64(DeliveryFailed)))
	a.Detail = r.string("detail", MaxDetail)
}
