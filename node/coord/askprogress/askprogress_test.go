package askprogress

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func refsOf(n int) (refs []Ref) {
	for i := range n {
		refs = append(refs, Ref{Num: 1<<64 - 1, Task: 1<<32 - 1 - uint32(i), Attempt: 1<<32 - 1, Token: 1<<64 - 1})
	}
	return refs
}

// asked asks a server for n attempts of the site a.
func asked(t *testing.T, n int, answer func(from string, refs []Ref) []string) ([]string, error) {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := Server{Answer: answer}
		s.Serve(server, relay.Preamble{Site: "a"})
	}()
	texts, err := Ask(t.Context(), client, refsOf(n))
	<-done
	return texts, err
}

// TestTextsComeInOrder: each attempt has its own, at most as long as one may be, and readable whatever the site's
// handler says; the largest question and answer fit.
func TestTextsComeInOrder(t *testing.T) {
	long := strings.Repeat("ä", MaxText)
	got, err := asked(t, MaxAttempts, func(from string, refs []Ref) []string {
		if from != "a" || !slices.Equal(refs, refsOf(MaxAttempts)) {
			t.Errorf("%s asks for %v", from, refs)
		}
		return []string{"", "staging 3 of 7 files", "evil\x1b[31m\nline\xff", long}
	})
	want := make([]string, MaxAttempts)
	copy(want, []string{"", "staging 3 of 7 files", "evil [31m line?", long[:MaxText]})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	full := func(string, []Ref) []string { return slices.Repeat([]string{long}, 2*MaxAttempts) }
	got, err = asked(t, MaxAttempts, full)
	if err != nil || len(got) != MaxAttempts || got[MaxAttempts-1] != long[:MaxText] {
		t.Errorf("the largest answer: %d, %v", len(got), err)
	}
}

// TestHostileAnswers: whatever a site answers, the asker gets an error, and no text that nobody asked for.
func TestHostileAnswers(t *testing.T) {
	frame := func(b ...byte) []byte { return relay.EndFrame(append(relay.Frame(nil), b...)) }
	for name, answer := range map[string][]byte{
		"nothing":            {},
		"garbage":            []byte("HTTP/1.1 200 OK\r\n\r\n"),
		"too big":            {0xff, 0xff, 0xff, 0xff},
		"an empty frame":     frame(),
		"one text too few":   frame(1, 'x'),
		"one text too many":  frame(1, 'x', 1, 'y', 1, 'z'),
		"a text that is cut": frame(1, 'x', 9, 'y'),
		"a text too long":    frame(append([]byte{1, 'x', 0xc9, 1}, make([]byte, 201)...)...),
		"an endless length":  frame(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'x'),
		"a line feed":        frame(1, 'x', 1, '\n'),
		"an escape":          frame(1, 'x', 1, 0x1b),
		"no UTF-8":           frame(1, 'x', 1, 0xff),
	} {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = relay.ReadFrame(server, nil, maxQuestion)
			_, _ = server.Write(answer)
			_ = server.Close()
		}()
		texts, err := Ask(t.Context(), client, refsOf(2))
		if texts != nil || !errors.Is(err, ErrPeer) && !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %q, %v", name, texts, err)
		}
		<-done
	}
}

// TestSilenceEndsWithTheContext: a site that says nothing is waited for as long as its asker wants.
func TestSilenceEndsWithTheContext(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	go func() { _, _ = relay.ReadFrame(server, nil, maxQuestion) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, client, refsOf(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// FuzzWire: foreign bytes are read within bounds, and what is read is written alike.
func FuzzWire(f *testing.F) {
	f.Add(appendQuestion(nil, refsOf(3)), 2)
	f.Add(appendAnswer(nil, []string{"staging", ""}, 2), 2)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if refs, err := parseQuestion(b); err == nil {
			again, err := parseQuestion(appendQuestion(nil, refs))
			if err != nil || len(refs) > MaxAttempts || !slices.Equal(again, refs) {
				t.Fatalf("%v becomes %v, %v", refs, again, err)
			}
		}
		if n < 0 || n > MaxAttempts {
			return
		}
		if texts, err := parseAnswer(b, n); err == nil {
			again, err := parseAnswer(appendAnswer(nil, texts, n), n)
			if err != nil || !slices.Equal(again, texts) {
				t.Fatalf("%q becomes %q, %v", texts, again, err)
			}
		}
	})
}
