package attempts

import (
	"sync"

	"github.com/cloudshare/cloudshare/executor"
)

// Queue carries events to the broker without ever blocking the handler or
// losing one. It holds at most two events an attempt.
type Queue struct {
	out  chan executor.Event
	wake chan struct{}
	quit chan struct{}
	done chan struct{}

	mu   sync.Mutex
	list []executor.Event
}

// newQueue returns an empty one; Close ends its goroutine.
func newQueue() *Queue {
	q := &Queue{
		out:  make(chan executor.Event, 64),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run()
	return q
}

// Put never blocks.
func (q *Queue) Put(e executor.Event) {
	q.mu.Lock()
	q.list = append(q.list, e)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Out is closed by Close.
func (q *Queue) Out() <-chan executor.Event { return q.out }

func (q *Queue) takeEvents() []executor.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.list
	q.list = nil
	return l
}

func (q *Queue) run() {
	defer close(q.done)
	defer close(q.out)
	for {
		select {
		case <-q.wake:
		case <-q.quit:
			return
		}
		for _, e := range q.takeEvents() {
			select {
			case q.out <- e:
			case <-q.quit:
				return
			}
		}
	}
}

// Close drops what nobody took; Adopt will return it again.
func (q *Queue) Close() {
	close(q.quit)
	<-q.done
}
