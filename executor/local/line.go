package local

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// A line is text: the version, what it is, its fields in a fixed order, and a period,
// without which it was torn: the beginning of a number is a number, too. Numbers
// are decimal, moments unix nanoseconds (0 = none), strings quoted as in Go, and
// lists begin with their length. JSON, which earlier versions wrote and is still
// read, took a tenth of what a supervisor needs for an attempt.
const (
	lineVersion = "2"
	lineEnd     = " ."
)

// appendText returns the line without its ends.
func (l line) appendText(dst []byte) []byte {
	w := writer(append(dst, lineVersion...))
	switch {
	case l.Sup != nil:
		w.word("sup").int(int64(l.Sup.Pid)).string(l.Sup.Boot)
	case l.Ask != nil:
		l.Ask.write(w.word("ask"))
	case l.Run != nil:
		w.word("run").string(l.Run.Name).int(int64(l.Run.Pid)).time(l.Run.At)
	case l.End != nil:
		r := &l.End.Result
		w.word("end").string(l.End.Name).int(int64(r.Cause)).int(int64(r.ExitCode)).int(int64(r.Signal)).time(r.Started).
			int(int64(r.Run)).string(r.Detail).int(l.End.Out).int(l.End.Err).time(l.End.At).usage(&r.Usage)
	case l.Drop != nil:
		w.word("drop").string(*l.Drop)
	case l.Void != nil:
		w.word("void").string(*l.Void)
	case l.Up != nil:
		w.word("up")
	case l.Sick != nil:
		w.word("sick").string(*l.Sick)
	case l.Stop != nil:
		w.word("stop").string(l.Stop.Name).string(l.Stop.Why)
	}
	return append(w, lineEnd...)
}

func (a *asked) write(w *writer) {
	t := &a.Task
	w.string(t.Job).uint(uint64(t.Task)).uint(uint64(t.Attempt)).uint(t.Token).
		string(t.Owner).string(t.Site).string(t.Machine).
		int(t.Need.MilliCPU).int(t.Need.MemMiB).int(t.Need.GPU).int(int64(len(t.Command)))
	for _, s := range t.Command {
		w.string(s)
	}
	w.string(t.Image).int(int64(len(t.Env)))
	for k, v := range t.Env {
		w.string(k).string(v)
	}
	w.int(int64(t.Timeout)).int(t.Fence).int(int64(a.Grace)).int(a.MaxLog).int(int64(len(a.CPUs)))
	for _, cpu := range a.CPUs {
		w.int(int64(cpu))
	}
	outputs := !isZero(&t.Outputs)
	if t.Network || outputs { // earlier lines end here
		w.int(bit(t.Network))
	}
	if outputs {
		w.outputs(&t.Outputs)
	}
}

// parseLine reads a line, with or without its ends.
func parseLine(raw []byte) (l line, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '{' {
		return l, json.Unmarshal(raw, &l) == nil
	}
	raw, whole := bytes.CutSuffix(raw, []byte(lineEnd))
	r := reader{b: raw}
	if r.word() != lineVersion || !whole {
		return line{}, false
	}
	switch r.word() {
	case "sup":
		l.Sup = &owner{Pid: int(r.int()), Boot: r.string()}
	case "ask":
		l.Ask = r.asked()
	case "run":
		l.Run = &begun{Name: r.string(), Pid: int(r.int()), At: r.time()}
	case "end":
		l.End = &ended{Name: r.string(), Result: executor.Result{
			Cause: executor.Cause(r.int()), ExitCode: int(r.int()), Signal: int(r.int()),
			Started: r.time(), Run: time.Duration(r.int()), Detail: r.string(),
		}, Out: r.int(), Err: r.int(), At: r.time()}
		l.End.Result.Usage = r.usage()
	case "drop":
		l.Drop = ptr(r.string())
	case "void":
		l.Void = ptr(r.string())
	case "sick":
		l.Sick = ptr(r.string())
	case "stop":
		l.Stop = &stopping{Name: r.string(), Why: r.string()}
	case "up":
		l.Up = &served{}
	default:
		return line{}, false
	}
	if r.bad || len(r.b) > 0 {
		return line{}, false
	}
	return l, true
}

func ptr[T any](v T) *T { return &v }

func (r *reader) asked() *asked {
	a := &asked{Task: executor.Task{
		ID:    executor.ID{Job: r.string(), Task: uint32(r.uint(32)), Attempt: uint32(r.uint(32)), Token: r.uint(64)},
		Owner: r.string(), Site: r.string(), Machine: r.string(),
		Need: executor.Resources{MilliCPU: r.int(), MemMiB: r.int(), GPU: r.int()},
	}}
	t := &a.Task
	for range r.count() {
		t.Command = append(t.Command, r.string())
	}
	t.Image = r.string()
	if n := r.count(); n > 0 {
		t.Env = make(map[string]string, n)
		for range n {
			k := r.string()
			t.Env[k] = r.string()
		}
	}
	t.Timeout, t.Fence = time.Duration(r.int()), r.int()
	a.Grace, a.MaxLog = time.Duration(r.int()), r.int()
	for range r.count() {
		a.CPUs = append(a.CPUs, int(r.int()))
	}
	t.Network = len(r.b) > 0 && r.int() == 1
	if len(r.b) > 0 {
		t.Outputs = r.outputs()
	}
	return a
}

// writer appends fields, a space before each.
type writer []byte

func (w *writer) word(s string) *writer {
	*w = append(append(*w, ' '), s...)
	return w
}

func (w *writer) int(v int64) *writer {
	*w = strconv.AppendInt(append(*w, ' '), v, 10)
	return w
}

func (w *writer) uint(v uint64) *writer {
	*w = strconv.AppendUint(append(*w, ' '), v, 10)
	return w
}

func (w *writer) string(s string) *writer {
	*w = strconv.AppendQuote(append(*w, ' '), s)
	return w
}

func (w *writer) time(t time.Time) *writer {
	if t.IsZero() {
		return w.int(0)
	}
	return w.int(t.UnixNano())
}

// reader takes fields; after the first that does not read it is bad and returns
// zeros.
type reader struct {
	b   []byte
	bad bool
}

// word takes what stands before the next space.
func (r *reader) word() string {
	word, rest, _ := bytes.Cut(r.b, []byte(" "))
	r.b = rest
	return string(word)
}

func (r *reader) int() int64 {
	v, err := strconv.ParseInt(r.word(), 10, 64)
	r.check(err == nil)
	return v
}

func (r *reader) uint(bits int) uint64 {
	v, err := strconv.ParseUint(r.word(), 10, bits)
	r.check(err == nil)
	return v
}

// count returns the length of a list, of which each field takes a byte at least.
func (r *reader) count() int {
	v := r.int()
	r.check(v >= 0 && v <= int64(len(r.b)))
	if r.bad {
		return 0
	}
	return int(v)
}

// string takes a quoted field; most hold nothing that is escaped.
func (r *reader) string() string {
	end := 1
	for plain := true; end < len(r.b); end++ {
		switch r.b[end] {
		case '\\':
			plain = false
			end++
		case '"':
			field := r.b[:end+1]
			r.b = bytes.TrimPrefix(r.b[end+1:], []byte(" "))
			if field[0] == '"' && plain {
				return string(field[1:end])
			}
			s, err := strconv.Unquote(string(field))
			r.check(err == nil && field[0] == '"')
			return s
		}
	}
	r.check(false)
	return ""
}

func (r *reader) time() time.Time {
	if n := r.int(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (r *reader) check(ok bool) {
	if !ok {
		r.bad, r.b = true, nil
	}
}
