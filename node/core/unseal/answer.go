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
	if failed != "" {
		b.rest(site, o, failed)
		for _, mark := range append(asked, o.marks...) {
			o.release(mark, again)
		}
		o.next, o.marks = nil, nil
		return
	}
	o.rest, o.refusal = 0, refusal{}
	for i, mark := range asked {
		b.take(site, mark, &answers[i])
		o.release(mark, again)
	}
	if len(o.waiting) == 0 {
		delete(b.owners, site)
	}
}

// take keeps a key, or why there is none.
func (b *Book) take(site string, mark seal.Mark, a *seal.Answer) {
	why, rest := a.Refusal.String(), refusedRest
	switch {
	case a.Refusal == seal.Behind, a.Refusal == seal.TooMany:
		rest = soonRest
	case a.Refusal != seal.Granted:
	case !a.Key.Opens(mark):
		why = "it gave a key that does not open it"
	default:
		b.keys.put(mark, a.Key)
		return
	}
	why = words(site, ": "+why)
	b.refused.put(mark, refusal{why, b.now.Boot + int64(rest)})
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
	for mark, r := range b.refused.all() {
		if b.now.Boot >= r.until {
			b.refused.drop(mark)
			b.moot = true
		}
	}
	moot := b.moot
	b.moot = false
	return moot
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
	key, err := own.Key(as.Payload)
	if err != nil {
		return seal.Answer{Refusal: seal.NoSecret}
	}
	return seal.Answer{Key: key}
}

var _ Assigned = turn.StateReader(nil)
