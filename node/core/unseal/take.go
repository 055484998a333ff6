package unseal

import (
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/seal"
)

// takeAll takes the answers to what was asked. refused is why the owner rests: it gave no key, and what it does not
// know does not explain that, since it is so again and again, or not all.
func (b *Book) takeAll(
	site string, o *owner, asked []wanted, answers []seal.Answer, again func(command.AttemptRef),
) (refused string) {
	o.keyless++
	for i, w := range asked {
		switch why := whyNot(&answers[i], w.mark); {
		case why == "":
			b.keys.put(w.mark, answers[i].Key)
			b.moot = b.moot || o.why != "" // what was declined meanwhile may come back
			o.keyless, o.rest, o.refusal = 0, 0, refusal{}
		case answers[i].Refusal != seal.NotAssigned || o.keyless > 2:
			refused = why
		}
	}
	if o.keyless > 0 && refused != "" {
		return refused
	}
	var dropped []seal.Mark
	for i, w := range asked {
		if b.take(site, o, w, &answers[i], again) {
			dropped = append(dropped, w.mark)
		}
	}
	o.askOthers(dropped)
	return ""
}

// whyNot says why an answer is no key that opens what has the mark, "": it is one.
func whyNot(a *seal.Answer, mark seal.Mark) string {
	switch {
	case a.Refusal != seal.Granted:
		return a.Refusal.String()
	case !a.Key.Opens(mark):
		return "it gave a key that does not open it"
	}
	return ""
}

// take has what waits for a key examined again, or notes why there is none. dropped: the owner does not know the
// attempt, which it may just have cancelled, so that this says nothing of others that wait for the same key.
func (b *Book) take(site string, o *owner, w wanted, a *seal.Answer, again func(command.AttemptRef)) (dropped bool) {
	if _, open := b.keys.get(w.mark); !open {
		why, rest := words(site, ": "+whyNot(a, w.mark)), refusedRest
		if a.Refusal == seal.NotAssigned {
			b.unknown.put(w.ref, refusal{why, b.now.Boot + int64(rest)})
			o.drop(w)
			again(w.ref)
			return true
		}
		if a.Refusal == seal.Behind || a.Refusal == seal.TooMany {
			rest = soonRest
		}
		b.refused.put(payload{site, w.mark}, refusal{why, b.now.Boot + int64(rest)})
	}
	o.release(w.mark, again)
	return false
}

// drop has an attempt wait no more.
func (o *owner) drop(w wanted) {
	o.waiting[w.mark] = slices.DeleteFunc(o.waiting[w.mark], func(ref command.AttemptRef) bool { return ref == w.ref })
	if len(o.waiting[w.mark]) == 0 {
		delete(o.waiting, w.mark)
	}
}

// askOthers asks for all that still waits for marks of which an attempt was dropped: one after the other would hold
// their machines for as many answers.
func (o *owner) askOthers(dropped []seal.Mark) {
	o.next = slices.DeleteFunc(o.next, func(w wanted) bool { return len(o.waiting[w.mark]) == 0 })
	asked := map[seal.Mark]bool{}
	for _, w := range o.next {
		asked[w.mark] = true
	}
	for _, mark := range dropped {
		if asked[mark] {
			continue
		}
		asked[mark] = true
		for _, ref := range o.waiting[mark] {
			o.next = append(o.next, wanted{ref, mark})
		}
	}
}
