package asklogs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// taker keeps what comes.
type taker struct {
	text map[int][2]string
	done []Done
	fail error
}

func (k *taker) Piece(i, stream int, b []byte) error {
	if k.text == nil {
		k.text = map[int][2]string{}
	}
	both := k.text[i]
	both[stream] += string(b)
	k.text[i] = both
	return k.fail
}

func (k *taker) Done(_ int, d Done) error {
	k.done = append(k.done, d)
	return nil
}

func refs(n int) (out []Ref) {
	for i := range n {
		out = append(out, Ref{Num: 1, Task: uint32(i), Attempt: 1})
	}
	return out
}

// served is a connection to a server.
func served(t *testing.T, answer func(context.Context, string, Ref) (Output, Refusal)) *Conn {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	s := Server{Answer: answer}
	go func() {
		defer close(done)
		s.Serve(context.Background(), server, relay.Preamble{Site: "a"})
	}()
	c := NewConn(client)
	t.Cleanup(func() { c.Close(); <-done })
	return c
}

func texts(stdout, stderr string) [2]io.ReadCloser {
	return [2]io.ReadCloser{io.NopCloser(strings.NewReader(stdout)), io.NopCloser(strings.NewReader(stderr))}
}

// Each output comes whole, whatever its size, or the reason why it does not, in the order of the question.
func TestOutputsAndRefusals(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", maxPiece/16*3) + "end"
	edge := large[:maxPiece]
	outputs := [][2]string{{"", ""}, {"out", "err"}, {large, ""}, {"", large}, {edge, edge}, {large, edge + "x"}}
	broken := len(outputs)
	c := served(t, func(_ context.Context, from string, r Ref) (Output, Refusal) {
		switch n := int(r.Task); {
		case from != "a":
			return Output{}, NotHere
		case n < len(outputs):
			return Output{Attempt: r.Attempt, Token: 7, Streams: texts(outputs[n][0], outputs[n][1])}, Granted
		case n == broken:
			o := Output{Attempt: 1, Streams: texts("", "")}
			o.Streams[1] = io.NopCloser(io.MultiReader(strings.NewReader(large), iotest.ErrReader(errors.New("disk"))))
			return o, Granted
		}
		return Output{}, Removed
	})
	for range 2 {
		var got taker
		if err := c.Ask(t.Context(), Question{Most: 1 << 20, Refs: refs(broken + 2)}, &got); err != nil {
			t.Fatal(err)
		}
		for i, want := range outputs {
			if got.text[i] != want || got.done[i] != (Done{Attempt: 1, Token: 7}) {
				t.Errorf("output %d: %d and %d bytes, %+v", i, len(got.text[i][0]), len(got.text[i][1]), got.done[i])
			}
		}
		if got.done[broken].Refusal != Unreadable || got.done[broken+1].Refusal != Removed {
			t.Errorf("%+v", got.done[broken:])
		}
	}
}

// What is beyond the bound is left out, and the bytes up to it come, exactly.
func TestStreamsAreCutAtTheBound(t *testing.T) {
	long := strings.Repeat("x", 3*maxPiece)
	c := served(t, func(context.Context, string, Ref) (Output, Refusal) {
		return Output{Attempt: 1, Streams: texts(long, "abcdef")}, Granted
	})
	for _, most := range []int64{1, 5, maxPiece, maxPiece + 1, 2 * maxPiece} {
		var got taker
		if err := c.Ask(t.Context(), Question{Most: most, Refs: refs(1)}, &got); err != nil {
			t.Fatal(err)
		}
		if got.text[0][0] != long[:most] || got.text[0][1] != "abcdef"[:min(most, 6)] || got.done[0].Refusal != Granted {
			t.Errorf("of %d: %d bytes and %q", most, len(got.text[0][0]), got.text[0][1])
		}
	}
}

// An attempt that goes on is waited for a moment, and refused then.
func TestRunningAttemptIsRefused(t *testing.T) {
	c := served(t, func(ctx context.Context, _ string, r Ref) (Output, Refusal) {
		if r.Task > 0 {
			return Output{Attempt: 1, Streams: texts("b", "")}, Granted
		}
		o := Output{Attempt: 1, Streams: texts("", "")}
		o.Streams[0] = io.NopCloser(io.MultiReader(strings.NewReader("a"), until{ctx}))
		return o, Granted
	})
	var got taker
	err := c.Ask(t.Context(), Question{Most: 9, Refs: refs(2)}, &got)
	if err != nil || got.done[0].Refusal != Running || got.text[1][0] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

// until is a stream that says nothing more until a context ends.
type until struct{ ctx context.Context }

func (u until) Read([]byte) (int, error) { <-u.ctx.Done(); return 0, u.ctx.Err() }

// Whatever a site answers, the asker gets an error, and no more than it has asked for.
func TestHostileAnswers(t *testing.T) {
	frame := func(b ...byte) []byte { return relay.EndFrame(append(relay.Frame(nil), b...)) }
	many := slices.Concat(frame(formPiece, 0, 'x', 'x', 'x'), frame(formPiece, 0, 'x', 'x', 'x'))
	for name, answer := range map[string][]byte{
		"nothing":                 {},
		"garbage":                 []byte("HTTP/1.1 200 OK\r\n\r\n"),
		"an empty frame":          frame(),
		"an unknown form":         frame(9),
		"a frame that is too big": {0xff, 0xff, 0xff, 0xff},
		"a cut frame":             {0, 0, 0, 9, formPiece, 0},
		"a third stream":          frame(formPiece, 2, 'x'),
		"an empty piece":          frame(formPiece, 0),
		"more than was asked for": many,
		"a whole that is longer":  frame(formWhole, 1, 1, 6, 'x', 'x', 'x', 'x', 'x', 'x'),
		"a wrong length":          frame(formWhole, 1, 1, 9, 'x'),
		"attempt 0":               frame(formEnd, 0, 1),
		"granted as a refusal":    frame(formRefused, 0),
		"bytes behind an end":     frame(formEnd, 1, 1, 1),
		"another answer":          append(frame(formEnd, 1, 1), frame(formEnd, 1, 1)...),
	} {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = relay.ReadFrame(server, nil, maxQuestion)
			_, _ = server.Write(answer)
			_ = server.Close()
		}()
		c := NewConn(client)
		var got taker
		err := c.Ask(t.Context(), Question{Most: 5, Refs: refs(1)}, &got)
		if !errors.Is(err, ErrPeer) && !errors.Is(err, ErrUnreachable) || len(got.text[0][0]) > 5 {
			t.Errorf("%s: %v, %q", name, err, got.text[0])
		}
		c.Close()
		<-done
	}
}

// A site that says nothing is waited for as long as the context lasts; what cannot be kept ends the question.
func TestQuestionsEnd(t *testing.T) {
	client, server := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, server) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	c := NewConn(client)
	if err := c.Ask(ctx, Question{Most: 5, Refs: refs(1)}, &taker{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	c.Close()
	_ = server.Close()
	full := errors.New("disk full")
	c = served(t, func(context.Context, string, Ref) (Output, Refusal) {
		return Output{Attempt: 1, Streams: texts("a", "")}, Granted
	})
	if err := c.Ask(t.Context(), Question{Most: 5, Refs: refs(1)}, &taker{fail: full}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// The largest question fits its frame.
func TestLargestQuestion(t *testing.T) {
	q := Question{Most: 1<<63 - 1}
	for range MaxAttempts {
		q.Refs = append(q.Refs, Ref{Num: 1<<64 - 1, Task: 1<<32 - 1, Attempt: 1<<32 - 1})
	}
	b := q.append(nil)
	got, err := parseQuestion(b)
	if len(b) > maxQuestion || err != nil || !reflect.DeepEqual(got, q) {
		t.Errorf("%d bytes, the limit is %d: %v", len(b), maxQuestion, err)
	}
}

// Foreign bytes are read within bounds, and what is read is written alike.
func FuzzWire(f *testing.F) {
	q := Question{Most: 1 << 26, Refs: refs(3)}
	f.Add(q.append(nil))
	f.Add(appendWhole(nil, Done{Attempt: 1, Token: 1 << 63}, [2][]byte{{1}, {2}}))
	f.Add(appendPiece(nil, 1, []byte("x")))
	f.Add(appendEnd(nil, Done{Refusal: Running}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := parseQuestion(b); err == nil {
			again, err := parseQuestion(q.append(nil))
			if err != nil || !reflect.DeepEqual(again, q) || len(q.Refs) > MaxAttempts {
				t.Fatalf("%+v, %v", again, err)
			}
		}
		p, err := parsePart(b)
		if err != nil {
			return
		}
		var written []byte
		switch {
		case !p.ends && len(p.streams[0]) > 0:
			written = appendPiece(nil, 0, p.streams[0])
		case !p.ends:
			written = appendPiece(nil, 1, p.streams[1])
		case b[0] == formWhole:
			written = appendWhole(nil, p.Done, p.streams)
		default:
			written = appendEnd(nil, p.Done)
		}
		again, err := parsePart(written)
		if err != nil || again.Done != p.Done || !bytes.Equal(again.streams[0], p.streams[0]) ||
			!bytes.Equal(again.streams[1], p.streams[1]) {
			t.Fatalf("%+v becomes %+v, %v", p, again, err)
		}
	})
}
