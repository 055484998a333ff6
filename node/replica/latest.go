package replica

import "github.com/cloudshare/cloudshare/node"

// Latest walks the feed back from its end, not to an event at or before after
// (zero = as far as the feed is held), until it has so many events. Each step
// holds the feed for maxLook events. The subscription's own place stays.
func (s *Subscription) Latest(after node.EventID, most int) node.Latest {
	var l node.Latest
	if most <= 0 {
		return l
	}
	for s.lookBack(after, most, &l) {
	}
	for i, j := 0, len(l.Events)-1; i < j; i, j = i+1, j-1 {
		l.Events[i], l.Events[j] = l.Events[j], l.Events[i]
	}
	s.replica.dated(l.Events)
	l.Since = s.replica.dated([]node.Event{l.Since})[0]
	return l
}

// lookBack takes one step, newest first, and reports whether there is more.
func (s *Subscription) lookBack(after node.EventID, most int, l *node.Latest) bool {
	f := s.replica.feed
	var found []node.Event
	f.mu.RLock()
	i := len(f.ring)
	if l.Since.ID == (node.EventID{}) {
		l.Place = f.now()
	} else {
		at, held := f.seek(l.Since.ID)
		if i = at - 1; !held { // the ring has gone on meanwhile
			i = 0
		}
	}
	more := true
	for steps := 0; more && steps < maxLook; steps++ {
		if i--; i < 0 || !follows(f.at(i).ID, after) {
			l.Whole, more = true, false
			break
		}
		e := f.at(i)
		l.Since = *e
		if s.filter.Selects(e) {
			found = append(found, *e)
			more = len(s.filter.Labels) > 0 || len(l.Events)+len(found) < most
		}
	}
	f.mu.RUnlock()
	found = s.labelled(found)
	l.Events = append(l.Events, found[:min(len(found), most-len(l.Events))]...)
	return more && len(l.Events) < most
}

// follows reports whether an event's place is after another one.
func follows(id, after node.EventID) bool {
	c := id.CompareLog(after)
	return c > 0 || c == 0 && id.Home > after.Home
}
