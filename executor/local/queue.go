package local

import (
	"sync"

	"github.com/cloudshare/cloudshare/executor"
)

// queue carries events to the broker without ever blocking the handler or
// losing one. It holds at most two events an attempt.
type queue struct {
	out  chan executor.Event
	wake chan struct{}
	quit chan struct{}
	done chan struct{}

	mu   sync.Mutex
	list []executor.Event
}

func newQueue() *queue {
	q := &queue{
		out:  make(chan executor.Event, 64),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run()
	return q
}

func (q *queue) put(e executor.Event) {
	q.mu.Lock()
	q.list = append(q.list, e)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) take() []executor.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.list
	q.list = nil
	return l
}

func (q *queue) run() {
	defer close(q.done)
	defer close(q.out)
	for {
		select {
		case <-q.wake:
		case <-q.quit:
			return
		}
		for _, e := range q.take() {
			select {
			case q.out <- e:
			case <-q.quit:
				return
			}
		}
	}
}

// close drops what nobody took; Adopt will return it again.
func (q *queue) close() {
	close(q.quit)
	<-q.done
}
