package outputs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cloudshare/cloudshare/node"
)

// Of tasks whose site the state does not say, the sites are asked together where the
// output is, before any of it is sent: one question to each for up to a thousand tasks.

// isAnywhere reports whether any site may have a task's output: the state keeps no record
// of it, or it waits for another attempt.
func isAnywhere(t *node.Task) bool { return t.Unrecorded || t.Attempt > 0 && t.Site == "" }

// findKept looks for the output of those tasks that any site may have.
func (m *manyLogs) findKept(ctx context.Context, tasks []node.Task) (err error) {
	var positions []uint32
	for i := range tasks {
		if isAnywhere(&tasks[i]) {
			positions = append(positions, tasks[i].Position)
		}
	}
	if len(positions) > 0 {
		m.kept, err = m.of.survey(ctx, m.query.Job, positions)
	}
	return err
}

// copyKept sends the newest output of a task that any site may have, if that is of a later
// attempt than one. Of a task that need not have begun nothing is said, unless it is named.
func (m *manyLogs) copyKept(ctx context.Context, v *survey, t *node.Task, than uint32) error {
	k, err := v.of(t.Position, t.Attempt, fmt.Sprintf("the output of task %s/%d", m.query.Job, t.Index))
	if err != nil {
		mayHaveNone := !m.named && t.Attempt == 0 && t.ExitCode == nil && t.Signal == nil
		if mayHaveNone && errors.Is(err, node.ErrNotFound) && !errors.Is(err, node.ErrOutputGone) {
			return nil
		}
		return err
	}
	if k.Attempt <= than {
		return nil
	}
	return m.copyFrom(ctx, t.Index, k.Attempt, func() (io.ReadCloser, error) {
		return m.atSite(ctx, k.site(m.of.broker.Site()), func() (io.ReadCloser, error) {
			body, _, err := m.of.openKept(ctx, m.query, &k, m.tail)
			return body, err
		})
	})
}

// followKept sends what a task has written that ended before it was looked at again.
func (m *manyLogs) followKept(ctx context.Context, t *node.Task, printed uint32) {
	v, err := m.of.survey(ctx, m.query.Job, []uint32{t.Position})
	if err == nil {
		err = m.copyKept(ctx, v, t, printed)
	}
	m.missedTask(ctx, t.Index, err)
}
