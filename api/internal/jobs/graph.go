package jobs

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/jobgraph"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// registerGraph adds GET /v1/jobs/{id}/graph.
func (j *Jobs) registerGraph() {
	j.api.Handle(huma.Operation{
		OperationID: "graph", Method: http.MethodGet, Path: "/v1/jobs/{id}/graph", Summary: "The jobs that a job waits for, and those that wait for it",
		Description: "And theirs in turn, nearest first, to both sides. What has waited for a job and does no more is found from it until its broker is started again, the first 100. " +
			"What is beyond the bounds is counted at the node that names it, as are jobs of other users. Of another site's job there is that one alone. " +
			"A blocking read waits for anything that happens, as the states are those of several jobs.",
		Parameters: append(reads.BlockingParams(), rest.IDParam(),
			rest.QueryParam("depth", huma.TypeInteger, "how many steps are gone to each side: 1 to 100, default 8"),
			rest.QueryParam("limit", huma.TypeInteger, "how many nodes there are at most: 1 to 200, default 50"),
			rest.QueryParam("fan", huma.TypeInteger, "how many steps are gone from one node to each side: 1 to 100, default 20")),
		Responses: j.api.Responses(http.StatusOK, wire.TypeJSON, j.api.Schema(wire.JobGraph{}), 400, 403, 404, 503),
	}, j.graph)
}

func (j *Jobs) graph(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return err
	}
	bounds, err := graphBounds(r)
	if err != nil {
		return err
	}
	if err = j.askedHere(r, id); err != nil {
		return err
	}
	if err = j.reads.Await(w, r, command.JobID{}); err != nil {
		return err
	}
	g, err := jobgraph.Find(r.Context(), j.broker, id, bounds)
	if err != nil {
		return err
	}
	out := form.Graph(&g)
	out.Freshness = reads.Freshness(r.Context())
	return rest.WriteJSON(w, http.StatusOK, out)
}

// graphBounds reads how large a graph is to be.
func graphBounds(r *http.Request) (b jobgraph.Bounds, err error) {
	for _, p := range []struct {
		name      string
		to        *int
		def, most uint64
	}{
		{"depth", &b.Depth, jobgraph.DefaultDepth, jobgraph.MaxDepth},
		{"limit", &b.Nodes, jobgraph.DefaultNodes, jobgraph.MaxNodes},
		{"fan", &b.Fan, jobgraph.DefaultFan, jobgraph.MaxFan},
	} {
		n, err := rest.QueryUint(r, p.name, p.def, 1, p.most)
		if err != nil {
			return b, err
		}
		*p.to = int(n)
	}
	return b, nil
}
