package peers

import (
	"errors"
	"sync"

	"github.com/cloudshare/cloudshare/node"
)

const (
	// Width is how many brokers one request asks at a time.
	Width = 16
	// MaxAnswer bounds what another broker answers about many jobs or tasks, in bytes.
	MaxAnswer = 16 << 20
)

// Others gathers the targets of a request that other brokers answer for.
type Others struct {
	sites map[string]*Share
}

// Share is what one other broker answers for.
type Share struct {
	At   *node.ElsewhereError
	Jobs []int // places in the request
}

// AddTarget notes a target if another broker answers for it.
func (o *Others) AddTarget(i int, err error) bool {
	var at *node.ElsewhereError
	if !errors.As(err, &at) {
		return false
	}
	if o.sites == nil {
		o.sites = map[string]*Share{}
	}
	if o.sites[at.Site] == nil {
		o.sites[at.Site] = &Share{At: at}
	}
	o.sites[at.Site].Jobs = append(o.sites[at.Site].Jobs, i)
	return true
}

// AskEach has each of the brokers answer for its targets, Width at a time.
func (o *Others) AskEach(each func(*Share)) {
	var running sync.WaitGroup
	room := make(chan struct{}, Width)
	for _, e := range o.sites {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			each(e)
		})
	}
	running.Wait()
}

// AskEach asks each site, Width at a time. All answers must be taken; once they are
// wanted no more, ask has to return at once.
func AskEach[T any](sites []node.ElsewhereError, ask func(node.ElsewhereError) T) <-chan T {
	queue, answers := make(chan node.ElsewhereError), make(chan T)
	var workers sync.WaitGroup
	for range min(Width, len(sites)) {
		workers.Go(func() {
			for site := range queue {
				answers <- ask(site)
			}
		})
	}
	go func() {
		for _, site := range sites {
			queue <- site
		}
		close(queue)
		workers.Wait()
		close(answers)
	}()
	return answers
}
