package leftover

import (
	"context"
	"sync"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/broker/delivery"
	"github.com/cloudshare/cloudshare/node/coord"
)

// maxKnown bounds what is on its way, the rest being found in the state when there is room, and of how many it is
// remembered why they were given up, the newest.
const maxKnown = 1 << 14

// list is what is to come. It is the state that the loop sees.
type list struct {
	Source
	most int // maxKnown; tests have less

	mu    sync.Mutex
	place uint64                              // grows with each that is added
	fresh []fsm.Delivery                      // of which the loop was not told
	open  map[command.AttemptRef]fsm.Delivery // that are not settled, fresh ones included
	lost  map[command.AttemptRef]string       // why they do not come
	order []command.AttemptRef                // of lost, oldest first

	added chan struct{} // something is fresh
	room  chan struct{} // something was settled
	due   chan struct{} // the state is to be looked through
}

var _ delivery.State = (*list)(nil)

func newList(s Source) *list {
	return &list{
		Source: s, most: maxKnown, open: map[command.AttemptRef]fsm.Delivery{}, lost: map[command.AttemptRef]string{},
		added: make(chan struct{}, 1), room: make(chan struct{}, 1), due: make(chan struct{}, 1),
	}
}

// add has something fetched, once; false: there is no room for it now.
func (l *list) add(d fsm.Delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.open[d.AttemptRef]
	if !known {
		_, known = l.lost[d.AttemptRef]
	}
	switch {
	case known:
		return true
	case len(l.open) >= l.most:
		return false
	}
	l.place++
	d.Since = l.place
	l.open[d.AttemptRef] = d
	l.fresh = append(l.fresh, d)
	coord.Signal(l.added)
	return true
}

// get returns what is on its way.
func (l *list) get(ref command.AttemptRef) (d fsm.Delivery, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, open = l.open[ref]
	return d, open
}

// settle ends one, and returns it if it was on its way.
func (l *list) settle(by *command.Delivered) (d fsm.Delivery, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, open = l.open[by.AttemptRef]; !open {
		return d, false
	}
	delete(l.open, by.AttemptRef)
	coord.Signal(l.room)
	if by.Outcome == command.DeliveryOK {
		return d, true
	}
	l.lost[by.AttemptRef] = by.Detail
	if l.order = append(l.order, by.AttemptRef); len(l.order) > l.most {
		delete(l.lost, l.order[0])
		l.order = l.order[1:]
	}
	return d, true
}

// find reports whether something is on its way, else why it was given up, "" = it was not, or that is forgotten.
func (l *list) find(ref command.AttemptRef) (open bool, lost string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, open = l.open[ref]
	return open, l.lost[ref]
}

// Since implements delivery.State. Nothing leaves that the loop has not settled.
func (l *list) Since(uint64) (changed []fsm.Delivery, whole bool, now uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed, l.fresh = l.fresh, nil
	return changed, false, l.place
}

// Await implements delivery.State.
func (l *list) Await(ctx context.Context, entry uint64) error {
	for {
		l.mu.Lock()
		more := l.place > entry
		l.mu.Unlock()
		if more {
			return nil
		}
		select {
		case <-l.added:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sweepLater has the state looked through.
func (l *list) sweepLater() { coord.Signal(l.due) }

// awaitSweep waits until the state is to be looked through; false: ctx has ended.
func (l *list) awaitSweep(ctx context.Context) bool { return await(ctx, l.due) }

// awaitRoom waits until something was settled; false: ctx has ended.
func (l *list) awaitRoom(ctx context.Context) bool { return await(ctx, l.room) }

func await(ctx context.Context, what <-chan struct{}) bool {
	select {
	case <-what:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
