package web

import (
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// maxAttempts bounds the earlier attempts in the drawing of a job.
const maxAttempts = 200

// taskGantt draws the attempts of some tasks of one job: the last ones, and the
// earlier ones that are remembered.
func (p *Pages) taskGantt(id command.JobID, tasks []node.Task) gantt {
	byTask := map[uint32][]Attempt{}
	if p.cfg.History != nil && len(tasks) > 0 {
		for _, a := range p.cfg.History.EarlierOf(id, tasks[0].Index, tasks[len(tasks)-1].Index+1, maxAttempts) {
			byTask[a.Task] = append(byTask[a.Task], a)
		}
	}
	var rows [][]Attempt
	for _, t := range tasks {
		if row := attemptsOf(id, t, byTask[t.Index]); len(row) > 0 {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return gantt{}
	}
	g := newGantt(span(rows, p.cfg.Now()))
	g.byExecutor = true
	for _, row := range rows {
		last := row[len(row)-1]
		g.add(fmt.Sprintf("%d · %s", last.Task, last.Site), "", 0, row, nil, 1)
	}
	return g
}

// attemptsOf returns a task's attempts by start.
func attemptsOf(id command.JobID, t node.Task, earlier []Attempt) (row []Attempt) {
	for _, a := range earlier {
		if a.Attempt < t.Attempt || t.StartedAt.IsZero() {
			row = append(row, a)
		}
	}
	if !t.StartedAt.IsZero() {
		row = append(row, Attempt{
			Job: id, Task: t.Index, Attempt: t.Attempt, Site: t.Site, Started: t.StartedAt, Ended: t.EndedAt,
			Outcome: t.State,
		})
	}
	slices.SortFunc(row, func(a, b Attempt) int { return a.Started.Compare(b.Started) })
	return row
}

// span returns the time that rows take.
func span(rows [][]Attempt, now time.Time) (from, to time.Time) {
	from = now
	for _, a := range slices.Concat(rows...) {
		if a.Ended.IsZero() {
			a.Ended = now
		}
		if a.Started.Before(from) {
			from = a.Started
		}
		if a.Ended.After(to) {
			to = a.Ended
		}
	}
	return from, to
}
