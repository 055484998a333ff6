package form

import (
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// noticesOf returns who is told of a job's end, as the API says it.
func noticesOf(list []node.Notice) (out []wire.Notice) {
	for i := range list {
		n := &list[i]
		out = append(out, wire.Notice{
			URL: n.URL, On: n.On, State: n.State.String(), Attempts: n.Attempts,
			LastAt: Moment(n.LastAt()), NextAt: Moment(n.NextAt()), Outcome: n.Outcome,
		})
	}
	return out
}
