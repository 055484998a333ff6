package node

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

const (
	// maxKeys is how many idempotency keys a broker holds.
	maxKeys = 1_000_000
	// keyLife is how long a key is remembered.
	keyLife = 24 * time.Hour
	// publishPatience is how long a client waits for the quorum before it is
	// told that its job is durable at this site only; the job goes on to the
	// federation all the same.
	publishPatience = 5 * time.Second
	// One Submit command holds at most so many jobs and about so many bytes.
	publishJobs  = 1000
	publishBytes = 512 << 10
)

// submit accepts jobs (steps 1 and 2; the paper's event 1).
func (c *core) submit(ev submitEvent, s stateReader, fx *effects) {
	if c.incarnation != 0 {
		c.reconcile(s, fx) // what the state has assigned here is not free
	}
	for i, req := range ev.reqs {
		c.submitOne(req, func(a Answer) { ev.reply(i, a) }, s, fx)
	}
}

func (c *core) submitOne(req Request, reply func(Answer), s stateReader, fx *effects) {
	key, done := c.checkKey(req, reply, s, fx)
	if done {
		return
	}
	js := req.Spec.JobSpec(c.nextJob, c.now.wall.UnixMilli())
	reason := ""
	if ok, why := s.AnyFits(js); !ok {
		if req.Strict {
			fx.reply(reply, Answer{Err: fmt.Errorf("%w: %s", ErrUnfit, why)})
			return
		}
		reason = why
	}
	c.nextJob++
	fx.writes = append(fx.writes, put(bucketMeta, keyNextJob, number(c.nextJob)))
	if req.Key != "" {
		c.keys.add(key, keyRecord{Job: js.Num, Body: req.Body, AtMs: js.CreatedMs}, fx)
	}
	id := fsm.JobID{Site: c.site, Num: js.Num}
	if places := c.homePlaces(&js, s); places != nil {
		c.runHome(js, places, s, fx)
		fx.reply(reply, Answer{ID: id, State: fsm.Running.String(), Durability: DurableSite})
		return
	}
	if c.alone() && c.homeAlone(&js) {
		c.queueHome(js, fx)
		fx.reply(reply, Answer{ID: id, State: fsm.Queued.String(), Reason: aloneReason, Durability: DurableSite})
		return
	}
	c.pubs.open = append(c.pubs.open, pendingJob{spec: js, reason: reason, key: key, keyed: req.Key != "", reply: reply})
}

// homePlaces applies event 1 of the paper: own capacity is free and no waiting
// task could run on it. A job that is still on its way to the queue waits, too.
func (c *core) homePlaces(js *fsm.JobSpec, s stateReader) []string {
	if !c.homeOpen(js) || len(c.home.waiting) > 0 || c.homePaused() {
		return nil
	}
	if !c.alone() && (!c.pubs.empty() || s.WaitingFits(c.site)) {
		return nil
	}
	return c.place(js)
}

// reply has an answer sent once the writes of this turn are durable.
func (fx *effects) reply(reply func(Answer), a Answer) {
	fx.replies = append(fx.replies, func() { reply(a) })
}

// keyBook is what the idempotency keys stand for.
type keyBook struct {
	byHash map[[32]byte]keyRecord
	order  [][32]byte // oldest first
}

func (k *keyBook) add(hash [32]byte, rec keyRecord, fx *effects) {
	k.byHash[hash] = rec
	k.order = append(k.order, hash)
	fx.writes = append(fx.writes, put(bucketKeys, hash[:], record(rec)))
}

func (k *keyBook) drop(hash [32]byte, fx *effects) {
	delete(k.byHash, hash)
	fx.writes = append(fx.writes, tidy(bucketKeys, hash[:]))
}

// expire forgets keys older than keyLife, a bounded number at a time.
func (k *keyBook) expire(now time.Time, fx *effects) {
	limit := now.Add(-keyLife).UnixMilli()
	for n := 0; n < 10_000 && len(k.order) > 0; n++ {
		rec, held := k.byHash[k.order[0]]
		if held && rec.AtMs > limit {
			return
		}
		if held {
			k.drop(k.order[0], fx)
		}
		k.order = k.order[1:]
	}
}

// checkKey answers a request whose idempotency key decides it: a repeat gets
// the original id, another body under the same key an error.
func (c *core) checkKey(req Request, reply func(Answer), s stateReader, fx *effects) (hash [32]byte, done bool) {
	if req.Key == "" {
		return hash, false
	}
	hash = sha256.Sum256([]byte(req.Key))
	rec, seen := c.keys.byHash[hash]
	switch {
	case !seen && len(c.keys.byHash) >= maxKeys:
		fx.reply(reply, Answer{Err: fmt.Errorf("%w: %d: wait, or submit without a key", ErrKeysFull, maxKeys)})
	case !seen:
		return hash, false
	case rec.Body != req.Body:
		fx.reply(reply, Answer{Err: fmt.Errorf("%w: it stands for job %s.%d", ErrKeyReused, c.site, rec.Job)})
	default:
		c.replay(rec.Job, reply, s, fx)
	}
	return hash, true
}

// replay answers a repeat of a keyed request.
func (c *core) replay(num uint64, reply func(Answer), s stateReader, fx *effects) {
	if c.pubs.follow(num, reply) {
		return
	}
	a := Answer{ID: fsm.JobID{Site: c.site, Num: num}, Durability: DurableFederation, Replayed: true, State: fsm.Queued.String()}
	if job := c.home.jobs[num]; job != nil {
		a.Durability, a.State = DurableSite, job.state().String()
	} else if v, ok := s.Job(a.ID); ok {
		a.State, a.Reason = v.State.String(), v.Reason
	}
	fx.reply(reply, a)
}
