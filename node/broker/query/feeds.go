package query

import (
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Events subscribes to what happens after a place (AfterEntry, the ID of the
// last event read, or Feed.Now): what the log's entries did, the same at every
// broker, and what happened to this site's home jobs, which only this broker
// knows. A place ahead of this broker's state is waited for until the state was
// rebuilt since the start (Current), and then taken as lost; so are the home
// events after a place of before the start.
func (rd *Reader) Events(from node.EventID, filter node.EventFilter) *replica.Subscription {
	s := rd.replica.Events(from, filter, func(id command.JobID) map[string]string {
		j, _ := rd.Job(rd.ctx, id) // none if nobody knows it any more
		return j.Spec.Labels
	})
	return s.Until(rd.ctx.Done(), rd.current)
}

// Feed returns where the broker's events come from.
func (rd *Reader) Feed() *replica.Feed { return rd.replica.Feed() }
