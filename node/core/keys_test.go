package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

// keyModel is the plain form of keys.Book: one entry for every text.
type keyModel map[string]modelKey

type modelKey struct {
	job  uint64
	body byte
	step uint32
}

// text is a key's as clients may write it.
func text(key string, line uint32) string {
	if line == 0 {
		return key
	}
	return fmt.Sprintf("%s/%d", key, line)
}

// forget drops what is over.
func (m keyModel) forget(now time.Duration) {
	for k, v := range m {
		if keys.Over(v.step, now) {
			delete(m, k)
		}
	}
}

// asked is a request and what must come back.
type asked struct {
	req    node.Request
	job    uint64 // 0: the key stands for another body
	repeat bool
	answer *node.Answer // nil: not yet
}

// keyedRig is a site whose keyed requests are compared with a model's.
type keyedRig struct {
	*rigSite
	model   keyModel
	open    []*asked
	refused map[uint64]bool // jobs that came to nothing
}

// clock is what keys age by, now.
func (k *keyedRig) clock() time.Duration {
	k.core.keys.Advance(k.rig.clock().Up)
	return k.core.keys.Clock()
}

// request asks for lines of a key, and notes what must come back.
func (k *keyedRig) request(reqs []node.Request) {
	next := k.core.nextJob
	var list []*asked
	for _, req := range reqs {
		name, step := text(req.Key, req.Line), keys.StepOf(k.clock())
		want := &asked{req: req, job: next}
		if held, known := k.model[name]; !known {
			k.model[name] = modelKey{next, req.Meaning[0], step}
			next++
		} else if want.repeat = held.body == req.Meaning[0]; want.repeat {
			want.job = held.job
		} else {
			want.job = 0
		}
		list = append(list, want)
	}
	k.open = append(k.open, list...)
	k.turn(SubmitEvent{Reqs: reqs, Reply: func(i int, a node.Answer) { list[i].answer = &a }})
}

// check compares the answers that have come.
func (k *keyedRig) check(rt *rapid.T) {
	for _, q := range k.open {
		switch {
		case q.answer == nil || k.refused[q.job] && errors.Is(q.answer.Err, node.ErrFull):
		case q.job == 0 && errors.Is(q.answer.Err, node.ErrKeyReused):
		case q.answer.Err == nil && q.answer.ID.Num == q.job && q.answer.Replayed == q.repeat:
		default:
			rt.Fatalf("%s: %+v; want job %d, a repeat: %t", text(q.req.Key, q.req.Line), *q.answer, q.job, q.repeat)
		}
	}
	k.open = slices.DeleteFunc(k.open, func(q *asked) bool { return q.answer != nil })
}

// fill has the federation refuse what is being published. Jobs that a client
// was told to be durable are published again; the others' keys are free.
func (k *keyedRig) fill() {
	cmds := k.pending
	k.pending = nil
	for _, cmd := range cmds {
		submit, ok := cmd.Body.(*command.Submit)
		if !ok {
			k.pending = append(k.pending, cmd)
			continue
		}
		for i := range submit.Jobs {
			num := submit.Jobs[i].Num
			if p := k.core.pubs.Find(num); p == nil || p.Promised {
				continue
			}
			k.refused[num] = true
			maps.DeleteFunc(k.model, func(_ string, v modelKey) bool { return v.job == num })
		}
		k.turn(ResultEvent{Cmds: []command.Command{cmd}, Results: []command.Result{{Code: command.TooManyJobs}}})
	}
}

// TestKeyedRequestsAgainstModel repeats requests, whole, cut and with other
// bodies, through refusals, restarts and days, and compares every answer with
// that of a plain map.
func TestKeyedRequestsAgainstModel(t *testing.T) {
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := foundRig(t, func() (*record.Journal, error) { return unsynced(t.TempDir()) }, command.DefaultParams(), 1)
		k := &keyedRig{rigSite: r.sites[0], model: keyModel{}, refused: map[uint64]bool{}}
		defer func() { _ = k.journal.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"request": func(rt *rapid.T) {
				key := rapid.SampledFrom([]string{"k", "k/2", "other"}).Draw(rt, "key")
				n := rapid.SampledFrom([]uint32{0, 0, 1, 4, 9}).Draw(rt, "lines") // 0: a single job
				var reqs []node.Request
				for line := min(n, 1); line <= n; line++ {
					req := node.Request{Spec: spec, Key: key, Line: line}
					req.Meaning[0] = byte(line)
					switch rapid.IntRange(0, 9).Draw(rt, "kind") {
					case 0:
						continue // the line is no job
					case 1:
						req.Meaning[0] += 100
					}
					reqs = append(reqs, req)
				}
				k.request(reqs)
			},
			"order": func(*rapid.T) { r.settle() },
			"full":  func(*rapid.T) { k.fill() },
			"restart": func(rt *rapid.T) {
				k.check(rt)
				k.open = nil // nobody answers these any more
				k.boot()
			},
			"later": func(rt *rapid.T) {
				r.now = r.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 11 * time.Hour}).Draw(rt, "later"))
				// of the date
				r.dateStep = rapid.SampledFrom([]time.Duration{0, 48 * time.Hour, -48 * time.Hour}).Draw(rt, "step")
				k.lease(time.Hour)
				k.turn(TickEvent{})
				k.model.forget(k.clock())
			},
			"tick": func(*rapid.T) { k.turn(TickEvent{}) },
			"": func(rt *rapid.T) {
				k.check(rt)
			},
		})
	})
}

// TestKeysAreBounded: the lines of one key count once, and all lines together
// have a bound of their own; what is held is answered all the same.
func TestKeysAreBounded(t *testing.T) {
	const slot = 4096 // lines of a key that are held together
	a := newRig(t, command.DefaultParams(), 1).sites[0]
	a.core.keys.Limit(2, 1<<20)
	send := func(key string, line uint32) node.Answer {
		var got node.Answer
		spec, err := jobspec.ParseSpec([]byte(sleepJob))
		if err != nil {
			t.Fatal(err)
		}
		a.turn(SubmitEvent{
			Reqs:  []node.Request{{Spec: spec, Key: key, Line: line}},
			Reply: func(_ int, ans node.Answer) { got = ans },
		})
		a.rig.settle()
		return got
	}
	for line := range uint32(3 * slot) {
		if line%slot < 3 && send("many", line+1).Err != nil {
			t.Fatalf("line %d of a key is refused", line+1)
		}
	}
	if got := send("single", 0); got.Err != nil {
		t.Fatal(got.Err)
	}
	if got := send("third", 0); !errors.Is(got.Err, node.ErrKeysFull) {
		t.Errorf("the third key of two: %+v", got)
	}
	if got := send("single", 0); !got.Replayed {
		t.Errorf("a repeat while the book is full: %+v", got)
	}
	if got := send("single", 1); got.Err != nil {
		t.Errorf("a line of a key that is held: %v", got.Err)
	}
	a.core.keys.Limit(2, a.core.keys.Bytes())
	if got := send("single", 2); !errors.Is(got.Err, node.ErrKeysFull) {
		t.Errorf("a line more than there is room for: %+v", got)
	}
	if got := send("", 0); got.Err != nil {
		t.Errorf("without a key: %v", got.Err)
	}
}

// Found by review: each keyed request that was refused left an entry behind for
// a day, which no bound counted.
func TestRefusedKeysLeaveNothing(t *testing.T) {
	a := newRig(t, command.DefaultParams(), 1).sites[0]
	spec, err := jobspec.ParseSpec([]byte(sleepJob))
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(n int, key func(i int) (string, uint32)) {
		reqs := make([]node.Request, n)
		for i := range reqs {
			reqs[i].Spec = spec
			reqs[i].Key, reqs[i].Line = key(i)
		}
		refused := 0
		a.turn(SubmitEvent{Reqs: reqs, Reply: func(_ int, ans node.Answer) {
			if errors.Is(ans.Err, node.ErrFull) {
				refused++
			}
		}})
		cmds := a.pending
		a.pending = nil
		a.turn(ResultEvent{Cmds: cmds, Results: slices.Repeat([]command.Result{{Code: command.TooManyJobs}},
			len(cmds))})
		if refused != n {
			t.Fatalf("%d of %d refused", refused, n)
		}
	}
	a.submit(sleepJob, "") // takes the core
	a.submit(sleepJob, "held")
	a.rig.settle()
	before := a.core.keys.Bytes()
	refuse(1000, func(i int) (string, uint32) { return fmt.Sprintf("k%d", i), 0 })
	refuse(700, func(i int) (string, uint32) { return "many", uint32(i + 1) })
	if k := &a.core.keys; k.Len() != 1 || k.Bytes() != before {
		t.Errorf("%d keys and %d bytes after the refusals; want one key, %d bytes", k.Len(), k.Bytes(), before)
	}
}

// Found by review: a repeat for a job that is no longer kept said that it waits.
func TestRepeatForARetiredJob(t *testing.T) {
	params := command.DefaultParams()
	params.RetainMs = 60_000
	r := newRig(t, params, 1)
	a := r.sites[0]
	a.submit(sleepJob, "home")
	a.submit(sleepJob, "away")
	r.settle()
	for range 2 { // both have run
		a.finish(a.only(), 0)
		r.settle()
	}
	a.core.home.Forget(1, &Effects{})
	r.now = r.now.Add(time.Minute)
	r.apply() // the state retires what has ended
	for _, key := range []string{"home", "away"} {
		i := a.submit(sleepJob, key)
		if got := a.answers[i]; got.Err != nil || !got.Replayed || got.State != node.Retired || got.Reason == "" {
			t.Errorf("a repeat of %s: %+v", key, got)
		}
	}
	a.core.incarnation = 0 // as after a start: the state may be old
	i := a.submit(sleepJob, "away")
	if got := a.answers[i]; got.Err != nil || !got.Replayed || got.State != fsm.Queued.String() || got.Reason == "" {
		t.Errorf("a repeat before the site is registered: %+v", got)
	}
}
