package source

import (
	"context"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// maxPages bounds the pages of tasks that are asked for in search of those of one answer.
const maxPages = 100

// FindAll asks on, page by page, until so many tasks are found or there are no
// more; next is where to go on, 0 = nowhere.
func FindAll(ctx context.Context, b Tasks, id command.JobID, q node.TaskQuery, most int) (all []node.Task, next uint32, err error) {
	for range maxPages {
		q.Limit = most - len(all)
		tasks, next, err := b.FindTasks(ctx, id, q)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, tasks...)
		if q.From = next; next == 0 || len(all) == most {
			break
		}
	}
	return all, q.From, nil
}
