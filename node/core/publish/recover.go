package publish

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/record"
)

// Recover reads the groups of an earlier life.
func (b *Book) Recover(j record.Reader) error {
	return j.Each(record.BucketPublishing, func(k, v []byte) error {
		cmd, rest, err := command.Decode(slices.Clone(v)) // bbolt's memory must not be kept
		submit, ok := cmd.Body.(*command.Submit)
		if err != nil || !ok || len(rest) > 0 {
			return errors.Join(fmt.Errorf("publication %d is malformed", record.DecodeNumber(k)), err)
		}
		p := &publication{since: b.now.Wall, jobs: make([]Job, len(submit.Jobs))}
		for i := range submit.Jobs {
			p.jobs[i] = Job{Spec: submit.Jobs[i], Promised: true, Recovered: true}
		}
		b.queue(p)
		return nil
	})
}
