package outputs

import (
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// kept answers for this site alone.
func (o *Outputs) kept(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	if err = o.broker.Owned(r.Context(), id); err != nil {
		return err
	}
	asked, err := rest.QueryIndices(r)
	if err != nil {
		return err
	}
	if n := asked.Len(); n == 0 || n > maxLogTasks {
		return problem.BadQuery("tasks", "", "must name 1 to 1000 tasks")
	}
	positions := make([]uint32, 0, asked.Len())
	for at := range asked.All() {
		positions = append(positions, at)
	}
	page := wire.List[wire.Kept]{Items: []wire.Kept{}}
	for _, k := range o.broker.KeptOutputs(id, positions) {
		item := wire.Kept{Task: k.Position, Attempt: k.Attempt}
		if k.Err != nil {
			item.Problem = &problem.Logged(o.log, k.Err).Problem
		}
		page.Items = append(page.Items, item)
	}
	return rest.WriteJSON(w, http.StatusOK, page)
}

// keptHere converts another broker's answer about one task into this broker's form. It
// returns false if the answer is a problem that must not be passed on.
func keptHere(k *wire.Kept) (out node.KeptOutput, ok bool) {
	out = node.KeptOutput{Position: k.Task, Attempt: k.Attempt}
	if k.Problem == nil {
		return out, true
	}
	p := problem.Told(k.Problem)
	if p == nil {
		return out, false
	}
	out.Err = p
	return out, true
}
