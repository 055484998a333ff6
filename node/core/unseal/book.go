// Package unseal opens what a job runs: this site's own jobs by its secret, others' by keys that their owners give for
// what is assigned here. It is part of step 6: an assignment whose key is missing waits for it, and is declined if the
// owner cannot be asked or refuses. That is no fault of the task, and neither the owner nor this site pays for it.
package unseal

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/seal"
)

const (
	// maxKeys bounds the keys that are remembered, the newest ones.
	maxKeys = 4096
	// maxRefused bounds the payloads of which a refusal is remembered.
	maxRefused = 4096
	// firstRest and longestRest are for how long an owner that was not reached, or gave no key, is not asked again, and
	// this site declines its tasks: longer each time, since after each rest others wait behind all its jobs again.
	firstRest, longestRest = 2 * time.Second, 4 * time.Minute
	// refusedRest is for how long a payload is not asked for again that its owner gave no key of, soonRest if the owner
	// was only not able to say.
	refusedRest, soonRest = 15 * time.Second, 2 * time.Second
)

// Book holds the keys of other sites' payloads, and what is asked of whom.
type Book struct {
	own     *seal.Sealer
	now     *turn.Clock
	keys    recent[seal.Mark, seal.Key]
	refused recent[payload, refusal]
	// unknown are the attempts that their owners do not know.
	unknown recent[command.AttemptRef, refusal]
	owners  map[string]*owner // that are asked, or rest
	// moot: an owner or a payload rests no more, so that what was declined for it may come back.
	moot bool
}

// payload is an owner's: another may submit the same bytes, which is no reason to refuse the first one's.
type payload struct {
	owner string
	mark  seal.Mark
}

// wanted is an attempt that stands for all that wait for a mark.
type wanted struct {
	ref  command.AttemptRef
	mark seal.Mark
}

// refusal is why a payload rests, until when by CLOCK_BOOTTIME.
type refusal struct {
	why   string
	until int64
}

// owner is another site, as this one asks it for keys.
type owner struct {
	asked []wanted // by the question under way, in its order; nil: none is
	next  []wanted // by the next question
	// waiting are the attempts by the mark that they wait for.
	waiting map[seal.Mark][]command.AttemptRef
	rest    time.Duration // at its last failure, 0 = none
	// keyless counts answers in a row without any key.
	keyless int
	refusal // of all its payloads
}

// NewBook returns the book of a site that has no keys but its own.
func NewBook(own *seal.Sealer, now *turn.Clock) Book {
	return Book{
		own: own, now: now, keys: newRecent[seal.Mark, seal.Key](maxKeys), owners: map[string]*owner{},
		refused: newRecent[payload, refusal](maxRefused), unknown: newRecent[command.AttemptRef, refusal](maxRefused),
	}
}

// Open returns both texts of a site's payload. REQUIRES: Ready said so, or it is this site's own.
func (b *Book) Open(site string, payload []byte) (public, text []byte, err error) {
	whose := b.own.Whose()
	if site == whose.Site {
		return b.own.Open(payload)
	}
	mark, err := seal.MarkOf(payload)
	if err != nil {
		return nil, nil, err
	}
	key, ok := b.keys.get(mark)
	if !ok {
		return nil, nil, fmt.Errorf("%w: its owner has given none", seal.ErrOtherKey)
	}
	text, err = seal.Whose{Federation: whose.Federation, Site: site}.Open(payload, key)
	return seal.Public(payload), text, err
}

// Ready reports whether an assignment can be opened as far as its owner is concerned. If not, why says why it is to be
// declined; "": its key is asked for, and Answered will have it examined again.
func (b *Book) Ready(as *fsm.Assignment) (ready bool, why string) {
	if as.Job.Site == b.own.Whose().Site {
		return true, ""
	}
	mark, err := seal.MarkOf(as.Payload)
	if err != nil {
		return true, "" // Open says what is wrong with it
	}
	if _, ok := b.keys.get(mark); ok {
		return true, ""
	}
	if r, ok := b.refused.get(payload{as.Job.Site, mark}); ok && b.now.Boot < r.until {
		return false, r.why
	}
	if r, ok := b.unknown.get(as.AttemptRef); ok && b.now.Boot < r.until {
		return false, r.why
	}
	o := b.owners[as.Job.Site]
	if o == nil {
		o = &owner{waiting: map[seal.Mark][]command.AttemptRef{}}
		b.owners[as.Job.Site] = o
	}
	if b.now.Boot < o.until {
		return false, o.why
	}
	o.want(mark, as.AttemptRef)
	return false, ""
}

// want has an attempt wait for a mark, which is asked for once.
func (o *owner) want(mark seal.Mark, ref command.AttemptRef) {
	waiting, known := o.waiting[mark]
	if slices.Contains(waiting, ref) {
		return
	}
	o.waiting[mark] = append(waiting, ref)
	if !known {
		o.next = append(o.next, wanted{ref, mark})
	}
}

// Ask has the questions of this turn asked: one of each owner at a time, with all that has come together meanwhile.
func (b *Book) Ask(index uint64, fx *turn.Effects) {
	for _, site := range slices.Sorted(maps.Keys(b.owners)) {
		o := b.owners[site]
		if o.asked != nil || len(o.next) == 0 {
			continue
		}
		n := min(len(o.next), seal.MaxKeys)
		o.asked, o.next = o.next[:n:n], o.next[n:]
		attempts := make([]command.AttemptRef, n)
		for i := range o.asked {
			attempts[i] = o.asked[i].ref
		}
		fx.Asks = append(fx.Asks, turn.KeyAsk{Owner: site, Index: index, Attempts: attempts})
	}
}
