package wire

// JobGraph is a job, and jobs around it that wait for each other.
type JobGraph struct {
	Job   string      `json:"job"`
	Nodes []GraphNode `json:"nodes" doc:"by number, the job among them"`
	Edges []GraphEdge `json:"edges" doc:"between nodes"`
	Freshness
}

// GraphNode is one job of a graph.
type GraphNode struct {
	Job   string `json:"job"`
	Name  string `json:"name"`
	State string `json:"state" enum:"queued,running,succeeded,failed,cancelled,lost,withdrawn,unknown" doc:"unknown: it is no longer kept, and its end was not seen"`
	Held  bool   `json:"held,omitempty" doc:"it, or tasks of it, are held"`
	Gone  bool   `json:"gone,omitempty" doc:"it is no longer kept"`
	Side  string `json:"side" enum:"before,itself,after" doc:"where it stands to the job"`
	// MoreBefore and MoreAfter count what is no node.
	MoreBefore int `json:"more_before,omitempty" doc:"jobs that it names in after and that are no nodes"`
	MoreAfter  int `json:"more_after,omitempty" doc:"jobs that wait for it, or have, and that are no nodes"`
}

// GraphEdge says that a job waits for another one, or has waited.
type GraphEdge struct {
	Job   string `json:"job"`
	After string `json:"after"`
	When  string `json:"when" enum:"ok,any,notok,each"`
}
