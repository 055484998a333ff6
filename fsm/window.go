package fsm

import (
	"slices"
	"sort"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// admit finds the command's site and, if the command must not be executed now, returns the result that it gets
// instead.
func (s *fleet) admit(c *command.Command) (x *site, r command.Result, done bool) {
	refuse := func(code command.Code) (*site, command.Result, bool) {
		return nil, command.Result{Code: code, Index: s.index}, true
	}
	if s.founded == 0 {
		return refuse(command.NotFounded)
	}
	x = s.byName[c.ID.Site]
	switch {
	case x == nil:
		return refuse(command.UnknownSite)
	case c.ID.Incarnation != x.incarnation || x.state >= SiteGone:
		return refuse(command.OldIncarnation)
	case c.Ack >= c.ID.Seq:
		return refuse(command.OutOfRange)
	case c.ID.Seq-c.Ack > s.bounds.window: // known from the command alone, so each copy of it is refused too
		return refuse(command.WindowFull)
	}
	x.raise(c.Ack)
	if c.ID.Seq <= x.floor && !noCommandWindow {
		return refuse(command.Stale)
	}
	if i, ok := x.find(c.ID.Seq); ok && !noCommandWindow {
		return x, x.window[i].result.Clone(), true
	}
	return x, command.Result{}, false
}

// Result returns the recorded result of a command, if the state still has it. Genesis and Register have no
// number and so no recorded result: their repeats are recognised by their content.
func (s *views) Result(id command.ID) (command.Result, bool) {
	x := s.byName[id.Site]
	if x == nil || x.incarnation != id.Incarnation {
		return command.Result{}, false
	}
	i, ok := x.find(id.Seq)
	if !ok {
		return command.Result{}, false
	}
	return x.window[i].result.Clone(), true
}

// find returns the position of a command's result in the window.
func (x *site) find(seq uint64) (int, bool) {
	if n := len(x.window); n == 0 || x.window[n-1].seq < seq {
		return n, false
	}
	i := sort.Search(len(x.window), func(i int) bool { return x.window[i].seq >= seq })
	return i, x.window[i].seq == seq
}

// raise forgets the results that have reached the site. A snapshot may still read what is forgotten: the window
// is only resliced.
func (x *site) raise(ack uint64) {
	if ack <= x.floor {
		return
	}
	x.floor = ack
	i, ok := x.find(ack)
	if ok {
		i++
	}
	x.window = x.window[i:]
}

// windowGrowth is the least number of results by which a site's window grows.
const windowGrowth = 16

// record keeps a result. A snapshot may hold a prefix of the same array, so nothing in it is overwritten: the
// first insertion of an epoch copies.
func (x *site) record(epoch, seq uint64, r command.Result) {
	r = r.Clone()
	i, _ := x.find(seq)
	if i == len(x.window) {
		// Usually most of the window is already forgotten: growing by doubling would make room for only
		// one more each time.
		if len(x.window) == cap(x.window) {
			x.window = slices.Grow(x.window, max(windowGrowth, len(x.window)))
		}
		x.window = append(x.window, answer{seq, r})
		return
	}
	if x.windowEpoch != epoch {
		x.windowEpoch, x.window = epoch, slices.Clone(x.window)
	}
	x.window = slices.Insert(x.window, i, answer{seq, r})
}
