package replica

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// isClosed reports whether a channel that only closes is closed.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Who waits for what happens to tasks is not woken by each entry of submissions, but often enough that its place stays
// in the feed; who may want them is woken by each.
func TestSubmissionsWakeWhoWantsThem(t *testing.T) {
	r := NewReplica()
	wait := func(kinds ...fsm.EventKind) <-chan struct{} {
		filter := node.EventFilter{Kinds: map[fsm.EventKind]bool{}}
		for _, k := range kinds {
			filter.Kinds[k] = true
		}
		_, more, err := r.Events(r.feed.Now(), filter, nil).Look()
		if err != nil || more == nil {
			t.Fatalf("look: %v, %v", more, err)
		}
		return more
	}
	entry := uint64(0)
	add := func(kinds ...fsm.EventKind) {
		entry++
		events := make([]fsm.Event, len(kinds))
		for i, k := range kinds {
			events[i] = fsm.Event{Kind: k, Index: entry}
		}
		r.feed.add(events)
	}
	all, submitted, ended := wait(), wait(fsm.EventJobSubmitted), wait(fsm.EventJobEnded)
	add(fsm.EventJobSubmitted)
	if !isClosed(all) || !isClosed(submitted) || isClosed(ended) {
		t.Errorf("a submission has woken who wants all %t, submissions %t, ends %t", isClosed(all), isClosed(submitted), isClosed(ended))
	}
	if add(fsm.EventJobSubmitted, fsm.EventTaskEnded); !isClosed(ended) {
		t.Error("what happened to a task has woken nobody")
	}
	for _, wake := range []func(){
		func() {
			for range maxLook {
				add(fsm.EventJobSubmitted)
			}
		},
		func() { r.feed.AddHome([]node.Event{{Event: fsm.Event{Kind: fsm.EventJobEnded}}}) },
		func() { r.feed.reset(entry) },
	} {
		ended = wait(fsm.EventJobEnded)
		if wake(); !isClosed(ended) {
			t.Error("many submissions, a home event or a reset have woken nobody")
		}
	}
}
