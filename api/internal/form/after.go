package form

import (
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// afterOf returns the form of what a job's spec names to wait for, nil if that is nothing.
func afterOf(list []jobspec.Dependency) []wire.SpecAfter {
	var out []wire.SpecAfter
	for i := range list {
		out = append(out, wire.SpecAfter{Job: list[i].Name(), When: list[i].When.String()})
	}
	return out
}

// WaitsFor returns the form of what a held job waits for, nil if that is nothing.
func WaitsFor(list []node.Dependency) []wire.WaitsFor {
	var out []wire.WaitsFor
	for _, d := range list {
		out = append(out, wire.WaitsFor{Job: d.Job.String(), When: d.When.String(), State: d.State})
	}
	return out
}

// AwaitedBy returns the form of who waits for a job, nil if nobody does.
func AwaitedBy(d *node.Dependencies) *wire.AwaitedBy {
	if d.All == 0 {
		return nil
	}
	out := &wire.AwaitedBy{Count: d.All, Jobs: make([]string, 0, len(d.Waiting))}
	for _, id := range d.Waiting {
		out.Jobs = append(out.Jobs, id.String())
	}
	return out
}
