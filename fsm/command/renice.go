package command

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Renice changes how nice jobs of the command's own site are. Jobs that are unknown or over are passed over.
type Renice struct{ Jobs []Nice }

// Nice says how nice one job is from now on.
type Nice struct {
	Num  uint64
	Nice uint32 // 0 … MaxNice
}

// priorities is how many priorities there are.
const priorities = 2*MaxPriority + 1

// MinOrder is the least order that a job can have.
const MinOrder = -MaxPriority - MaxNice*priorities

// Order returns what the queues of the job's owner sort by, the greatest first: less nice, then higher priority.
func (j *JobSpec) Order() int32 { return Order(j.Priority, j.Nice) }

// Order is JobSpec.Order. A priority out of bounds gives an order that no job can have: it would be another job's.
func Order(priority int32, nice uint32) int32 {
	if priority < -MaxPriority || priority > MaxPriority {
		return MinOrder - 1
	}
	return priority - int32(nice)*priorities
}

// SplitOrder is the inverse of Order.
func SplitOrder(order int32) (priority int32, nice uint32) {
	n := (MaxPriority - int64(order)) / priorities
	return int32(int64(order) + n*priorities), uint32(n)
}

// Validate checks the bounds.
func (b *Renice) Validate() error {
	if err := within("jobs", int64(len(b.Jobs)), 0, MaxReports); err != nil {
		return err
	}
	for i := range b.Jobs {
		if b.Jobs[i].Num == 0 {
			return fmt.Errorf("%w: num 0: jobs are numbered from 1", ErrOutOfBounds)
		}
		if err := within("nice", int64(b.Jobs[i].Nice), 0, MaxNice); err != nil {
			return err
		}
	}
	return nil
}

func appendRenice(dst []byte, b *Renice) []byte {
	dst = appendLen(dst, len(b.Jobs))
	for i := range b.Jobs {
		dst = protowire.AppendVarint(protowire.AppendVarint(dst, b.Jobs[i].Num), uint64(b.Jobs[i].Nice))
	}
	return dst
}

func (r *reader) nice(n *Nice) { n.Num, n.Nice = r.number(), r.uint32("nice") }
