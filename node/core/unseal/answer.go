package unseal

import (
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/seal"
)

// Answered takes what an owner said to the question under way, or why it could not be asked (failed, in words). It
// calls again for each assignment that can be examined now.
func (b *Book) Answered(site string, answers []seal.Answer, failed string, again func(command.AttemptRef)) {
	o := b.owners[site]
	if o == nil || o.asked == nil {
		return
	}
	asked := o.asked
	o.asked = nil
	if failed == "" && len(answers) != len(asked) {
		failed = "its answer is of another question"
	}
	if failed == "" {
		failed = b.takeAll(site, o, asked, answers, again)
	}
	if failed != "" {
		b.rest(site, o, failed)
		for _, w := range append(asked, o.next...) {
			o.release(w.mark, again)
		}
		o.next = nil
	}
	if len(o.waiting) == 0 && o.rest == 0 && o.keyless == 0 {
		delete(b.owners, site)
	}
}

// rest has an owner not asked for a while.
func (b *Book) rest(site string, o *owner, failed string) {
	o.rest = min(max(firstRest, 2*o.rest), longestRest)
	o.refusal = refusal{
		words(site, ", which is asked again in "+o.rest.Round(time.Second).String()+": "+failed), b.now.Boot + int64(o.rest),
	}
}

// words puts a reason in one line that fits a command.
func words(site, what string) string {
	return command.Clip("no key to what it runs from its owner " + site + what)
}

// release has what waits for a mark examined again.
func (o *owner) release(mark seal.Mark, again func(command.AttemptRef)) {
	for _, ref := range o.waiting[mark] {
		again(ref)
	}
	delete(o.waiting, mark)
}

// Expire reports whether, since it was called last, an owner or a payload has rested long enough: what was declined for
// that may be assigned here again.
func (b *Book) Expire() bool {
	for _, o := range b.owners {
		if o.why != "" && b.now.Boot >= o.until {
			o.refusal, b.moot = refusal{}, true
		}
	}
	b.moot = expire(&b.refused, b.now.Boot) || b.moot
	b.moot = expire(&b.unknown, b.now.Boot) || b.moot
	moot := b.moot
	b.moot = false
	return moot
}

// expire drops what has rested long enough, and reports whether there was any.
func expire[K comparable](r *recent[K, refusal], boot int64) (some bool) {
	for k, v := range r.all() {
		if boot >= v.until {
			r.drop(k)
			some = true
		}
	}
	return some
}

// Assigned is what an owner needs of the state to answer another site.
type Assigned interface {
	Assignment(site string, ref command.AttemptRef) (fsm.Assignment, bool)
}

// Answer is what the owner says to a site that asks for the key of an attempt: it gives the key only if, by its own
// state, the attempt is of its own job and assigned to the site that asks.
func Answer(own *seal.Sealer, from string, ref command.AttemptRef, s Assigned) seal.Answer {
	if ref.Job.Site != own.Whose().Site {
		return seal.Answer{Refusal: seal.NotAssigned}
	}
	as, ok := s.Assignment(from, ref)
	if !ok || as.AttemptRef != ref {
		return seal.Answer{Refusal: seal.NotAssigned}
	}
	if _, err := seal.MarkOf(as.Payload); err != nil { // one that its job does not wait for any more
		return seal.Answer{Refusal: seal.NotAssigned}
	}
	key, err := own.Key(as.Payload)
	if err != nil {
		return seal.Answer{Refusal: seal.NoSecret}
	}
	return seal.Answer{Key: key}
}

var _ Assigned = turn.StateReader(nil)
