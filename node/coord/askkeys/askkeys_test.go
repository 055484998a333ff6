package askkeys

import (
	"bytes"
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func refsOf(nums ...uint64) (refs []command.AttemptRef) {
	for _, n := range nums {
		job := command.JobID{Site: "a", Num: n}
		refs = append(refs, command.AttemptRef{Job: job, Task: 1<<32 - 1, Attempt: 2, Token: 1 << 63})
	}
	return refs
}

// owner answers questions about site a's jobs: job 1 is assigned to b.
type owner struct {
	t      *testing.T
	dials  int
	mute   bool // it never answers
	served chan struct{}
}

func (o *owner) dial(context.Context, string, string) (net.Conn, error) {
	o.dials++
	client, server := net.Pipe()
	s := Server{Site: "a", Answer: func(_ context.Context, from string, q Question) (out []seal.Answer) {
		for _, ref := range q.Attempts {
			a := seal.Answer{Refusal: seal.NotAssigned}
			if from == "b" && q.Index == 7 && slices.Contains(refsOf(1), ref) {
				a = seal.Answer{Key: seal.Key{1, 31: 2}}
			}
			out = append(out, a)
		}
		return out
	}}
	go func() {
		defer close(o.served)
		if o.mute {
			_, _ = server.Read(make([]byte, 1<<16))
			_, _ = server.Read(make([]byte, 1))
			return
		}
		s.Serve(server, relay.Preamble{Site: "b"})
	}()
	return client, nil
}

// Answers come in the order of the question, over one connection; a refusal carries no key.
func TestQuestionsShareAConnection(t *testing.T) {
	o := &owner{t: t, served: make(chan struct{})}
	c := &Client{Dial: o.dial}
	for range 3 {
		got, err := c.Ask(t.Context(), "a", "x:1", Question{Index: 7, Attempts: refsOf(1, 2)})
		want := []seal.Answer{{Key: seal.Key{1, 31: 2}}, {Refusal: seal.NotAssigned}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if o.dials != 1 {
		t.Errorf("%d connections", o.dials)
	}
	c.Close()
	<-o.served
}

// A question is bounded by its context, whatever the other side does, and a connection that said nothing is not kept.
func TestSilentOwner(t *testing.T) {
	o := &owner{t: t, mute: true, served: make(chan struct{})}
	c := &Client{Dial: o.dial}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Ask(ctx, "a", "x:1", Question{Attempts: refsOf(1)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	<-o.served
	if len(c.rest) != 0 {
		t.Error("its connection is kept")
	}
	c.Close()
}

// A kept connection that the other side has ended meanwhile costs no question.
func TestEndedConnectionIsReplaced(t *testing.T) {
	o := &owner{t: t, served: make(chan struct{})}
	c := &Client{Dial: o.dial}
	ask := func() error {
		_, err := c.Ask(t.Context(), "a", "x:1", Question{Index: 7, Attempts: refsOf(1)})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	_ = c.rest[peer{"a", "x:1"}].Close()
	<-o.served
	o.served = make(chan struct{})
	if err := ask(); err != nil || o.dials != 2 {
		t.Errorf("%v after %d dials", err, o.dials)
	}
	c.Close()
	<-o.served
}

// Foreign bytes are read within bounds, and what is read is written alike.
func FuzzWire(f *testing.F) {
	q := Question{Index: 1 << 40, Attempts: refsOf(1, 1<<63)}
	f.Add(q.append(nil))
	f.Add(appendAnswers(nil, []seal.Answer{{Key: seal.Key{9}}, {Refusal: seal.TooMany}}))
	f.Add([]byte{0, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := parseQuestion(b, "a"); err == nil {
			again, err := parseQuestion(q.append(nil), "a")
			if err != nil || !reflect.DeepEqual(again, q) || len(q.Attempts) > seal.MaxKeys {
				t.Fatalf("%+v becomes %+v, %v", q, again, err)
			}
		}
		for n := range 3 {
			answers, err := parseAnswers(b, n)
			if err != nil {
				continue
			}
			again, err := parseAnswers(appendAnswers(nil, answers), n)
			if err != nil || !reflect.DeepEqual(again, answers) {
				t.Fatalf("%+v becomes %+v, %v", answers, again, err)
			}
		}
	})
}
