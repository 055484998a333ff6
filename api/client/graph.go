package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/cloudshare/cloudshare/api/wire"
)

// GraphQuery bounds a graph; of zero fields the broker has its own.
type GraphQuery struct {
	Depth int // how many steps are gone before and after the job
	Limit int // nodes
	Fan   int // how many steps are gone from one node to each side
}

// Graph returns the jobs that a job waits for, those that wait for it, and theirs in turn.
func (c *Client) Graph(ctx context.Context, id string, q GraphQuery) (wire.JobGraph, error) {
	query := url.Values{}
	for name, n := range map[string]int{"depth": q.Depth, "limit": q.Limit, "fan": q.Fan} {
		if n != 0 {
			query.Set(name, strconv.Itoa(n))
		}
	}
	return watched[wire.JobGraph](ctx, c, jobPath(id)+"/graph", query)
}
