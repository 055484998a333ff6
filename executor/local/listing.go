package local

import (
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// listAge is how long a list of what sandboxes show counts. To make it takes a third of
// what a sandbox takes; what is made later is as what is made while one is used.
const listAge = 10 * time.Second

// listing is what sandboxes show of the system's folders, as it was a moment ago.
type listing struct {
	mu    sync.Mutex
	lists [3]shown // by the network: the machine's resolver is one of the folders, or another one a file
}

// shown is one list.
type shown struct {
	until int64 // by executor.Boottime
	parts []string
}

// plan returns the plan with what it shows.
func (l *listing) plan(p sandbox.Plan) sandbox.Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := &l.lists[networkOf(p)]
	if now := executor.Boottime(); now >= list.until {
		*list = shown{now + int64(listAge), p.List().Shown}
	}
	p.Shown = list.parts
	return p
}
