package transport

import (
	"strconv"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// Places are for requests that stay for long. There are fewer of them than
// connections, so that some always remain for short requests.
type Places struct {
	taken       atomic.Int64 // invariant: at most most once Enter has returned
	most        int64
	name, title string // of the problem
	what        string // in the plural
}

// NewPlaces makes so many places for what; beyond them a client gets a problem of this
// name and title.
func NewPlaces(most int, name, title, what string) *Places {
	return &Places{most: int64(most), name: name, title: title, what: what}
}

// Taken returns how many are.
func (p *Places) Taken() int64 { return p.taken.Load() }

// Enter takes a place until leave; beyond the bound the request is refused, and
// its connection ended.
func (p *Places) Enter() (leave func(), err error) {
	if p.taken.Add(1) > p.most {
		p.taken.Add(-1)
		return nil, problem.Crowded(p.name, p.title,
			"this broker keeps "+strconv.FormatInt(p.most, 10)+" "+p.what+" at a time: try again later, or ask another broker")
	}
	return func() { p.taken.Add(-1) }, nil
}
