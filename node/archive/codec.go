package archive

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Records are positional: a kind, then fields as varints and counted strings, in
// the order of the append and read functions below. A changed layout is a new
// kind; an unknown kind is passed over.
const (
	kindHead    = 1
	kindGap     = 3
	kindPlace   = 4
	kindSeen    = 5
	kindAttempt = 6 // 2 had no Measured
	lastKind    = kindAttempt
)

// Bounds of what is read back.
const (
	maxText   = 4096    // of one string
	maxLabels = 256     // of one attempt
	maxRecord = 8 << 20 // of one record: a head with maxOpenHome runs
)

var errBadRecord = errors.New("malformed record")

// head opens a segment: what a reader needs that starts here.
type head struct {
	created    time.Time
	federation string
	place      node.EventID
	last       time.Time // of the newest attempt before
	// homes are home runs that are archived and not yet in the log.
	homes []homeRun
}

// homeRun names runs of one home task.
type homeRun struct {
	job  uint64
	task uint32
	n    uint32
}

func appendText(b []byte, s string) []byte {
	s = s[:min(len(s), maxText)]
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime writes unix milliseconds, 0 for the zero time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, 0)
	}
	return binary.AppendVarint(b, t.UnixMilli())
}

func appendPlace(b []byte, id node.EventID) []byte {
	b = binary.AppendUvarint(b, id.Entry)
	b = binary.AppendUvarint(b, uint64(id.N))
	return binary.AppendUvarint(b, id.Home)
}

func encodeHead(h *head) []byte {
	b := appendTime([]byte{kindHead}, h.created)
	b = appendPlace(appendText(b, h.federation), h.place)
	b = binary.AppendUvarint(appendTime(b, h.last), uint64(len(h.homes)))
	for _, r := range h.homes {
		b = binary.AppendUvarint(b, r.job)
		b = binary.AppendUvarint(b, uint64(r.task))
		b = binary.AppendUvarint(b, uint64(r.n))
	}
	return b
}

func appendSeen(b []byte, k homeKey) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(append(b, kindSeen), k.job), uint64(k.task))
}

func appendGap(b []byte, g *Gap) []byte {
	b = binary.AppendUvarint(append(b, kindGap), g.From)
	b = binary.AppendUvarint(b, g.To)
	return appendText(appendTime(appendTime(b, g.Since), g.Until), g.Reason)
}

// Flags of an attempt.
const (
	flagFinal = 1 << iota
	flagHome
	flagMeasured
)

func appendAttempt(b []byte, a *Attempt) []byte {
	flags := byte(0)
	if a.Final {
		flags |= flagFinal
	}
	if a.Home {
		flags |= flagHome
	}
	if !a.Measured.IsZero() {
		flags |= flagMeasured
	}
	b = append(b, kindAttempt, flags, byte(a.Outcome))
	b = binary.AppendUvarint(appendText(b, a.Job.Site), a.Job.Num)
	for _, v := range [...]uint64{uint64(a.Task), uint64(a.Count), uint64(a.Number), a.Token, a.Index} {
		b = binary.AppendUvarint(b, v)
	}
	b = appendText(appendText(appendText(appendText(b, a.Site), a.Machine), a.Reason), a.Name)
	for _, v := range [...]int64{
		int64(a.ExitCode), int64(a.Signal), a.Need.MilliCPU, a.Need.MemMiB, a.Need.GPU, a.EndedMs, a.ChargedMs,
	} {
		b = binary.AppendVarint(b, v)
	}
	b = appendTime(b, a.Ended)
	for _, t := range [...]time.Time{a.Submitted, a.Queued, a.Assigned, a.Started} {
		b = appendBefore(b, t, a.Ended)
	}
	keys := slices.Sorted(maps.Keys(a.Labels))
	keys = keys[:min(len(keys), maxLabels)]
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for _, k := range keys {
		b = appendText(appendText(b, k), a.Labels[k])
	}
	if flags&flagMeasured != 0 {
		b = appendMeasured(b, &a.Measured)
	}
	return b
}

func appendMeasured(b []byte, m *command.Measured) []byte {
	for _, v := range [...]int64{m.PeakBytes, m.UserMs, m.SystemMs, m.InBytes, m.OutBytes} {
		b = binary.AppendVarint(b, v)
	}
	return append(b, byte(m.Source))
}

// appendBefore writes how long before the end it was, plus 1 from 0 on; 0 is the
// zero time.
func appendBefore(b []byte, t, end time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, 0)
	}
	d := end.UnixMilli() - t.UnixMilli()
	if d >= 0 {
		d++
	}
	return binary.AppendVarint(b, d)
}

// reader reads fields; after the first fault all are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.uint()
	if v > 1<<32-1 {
		r.fail()
		return 0
	}
	return uint32(v)
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string {
	n := r.uint()
	if n > maxText || n > uint64(len(r.b)) {
		r.fail()
		return ""
	}
	v := string(r.b[:n])
	r.b = r.b[n:]
	return v
}

func (r *reader) time() time.Time {
	if ms := r.int(); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

func (r *reader) before(end time.Time) time.Time {
	switch d := r.int(); {
	case d == 0:
		return time.Time{}
	case d > 0:
		return time.UnixMilli(end.UnixMilli() - (d - 1)).UTC()
	default:
		return time.UnixMilli(end.UnixMilli() - d).UTC()
	}
}

func (r *reader) place() node.EventID {
	return node.EventID{Entry: r.uint(), N: r.uint32(), Home: r.uint()}
}

// done is nil if all was read and nothing was wrong.
func (r *reader) done() error {
	if r.bad || len(r.b) > 0 {
		return errBadRecord
	}
	return nil
}

// readHead reads what appendHead wrote, its kind gone.
func readHead(b []byte) (h head, err error) {
	r := reader{b: b}
	h.created, h.federation, h.place, h.last = r.time(), r.text(), r.place(), r.time()
	n := r.uint()
	if n > maxOpenHome {
		return h, errBadRecord
	}
	for range n {
		h.homes = append(h.homes, homeRun{r.uint(), r.uint32(), r.uint32()})
		if r.bad {
			break
		}
	}
	return h, r.done()
}

func readGap(b []byte) (g Gap, err error) {
	r := reader{b: b}
	g = Gap{From: r.uint(), To: r.uint(), Since: r.time(), Until: r.time(), Reason: r.text()}
	return g, r.done()
}

func readAttempt(b []byte, a *Attempt) error {
	r := reader{b: b}
	flags := r.byte()
	*a = Attempt{Final: flags&flagFinal != 0, Home: flags&flagHome != 0, Outcome: fsm.Ending(r.byte())}
	a.Job = command.JobID{Site: r.text(), Num: r.uint()}
	a.Task, a.Count, a.Number, a.Token, a.Index = r.uint32(), r.uint32(), r.uint32(), r.uint(), r.uint()
	a.Site, a.Machine, a.Reason, a.Name = r.text(), r.text(), r.text(), r.text()
	a.ExitCode, a.Signal = int32(r.int()), int32(r.int())
	a.Need = command.Resources{MilliCPU: r.int(), MemMiB: r.int(), GPU: r.int()}
	a.EndedMs, a.ChargedMs, a.Ended = r.int(), r.int(), r.time()
	a.Submitted, a.Queued = r.before(a.Ended), r.before(a.Ended)
	a.Assigned, a.Started = r.before(a.Ended), r.before(a.Ended)
	n := r.uint()
	if n > maxLabels {
		return errBadRecord
	}
	for i := uint64(0); i < n && !r.bad; i++ {
		if a.Labels == nil {
			a.Labels = make(map[string]string, n)
		}
		k := r.text()
		a.Labels[k] = r.text()
	}
	if flags&flagMeasured != 0 {
		a.Measured = command.Measured{
			PeakBytes: r.int(), UserMs: r.int(), SystemMs: r.int(), InBytes: r.int(), OutBytes: r.int(),
			Source: command.MeasureSource(r.byte()),
		}
	}
	return r.done()
}
