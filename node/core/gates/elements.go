package gates

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// Standing is how one task stands that another waits for. The greater one counts, if there are several.
type Standing uint8

// The standings.
const (
	OK      Standing = iota // it has succeeded
	Pending                 // it has not ended
	Never                   // it has ended otherwise, or nobody knows how
)

// Elements is how the tasks of a job stand that another job's tasks wait for, one by one. The zero value is a job
// whose tasks all are pending. It holds runs, not tasks.
type Elements struct {
	runs []element
	// Unknown: the job is no longer kept. How those of its tasks ended that are pending here was not seen.
	Unknown bool
}

// element is tasks up to a position, which is not theirs, that stand alike.
type element struct {
	until    uint32
	standing Standing
}

// Add adds tasks behind those that are there.
func (e *Elements) Add(count uint32, standing Standing) {
	last := len(e.runs) - 1
	if count == 0 {
		return
	}
	if last >= 0 && e.runs[last].standing == standing {
		e.runs[last].until += count
		return
	}
	from := uint32(0)
	if last >= 0 {
		from = e.runs[last].until
	}
	e.runs = append(e.runs, element{from + count, standing})
}

// At returns how the task at a position stands, and up to which position the following ones stand alike.
func (e *Elements) At(position uint32) (standing Standing, until uint32) {
	if standing, until = e.seen(position); e.Unknown && standing == Pending {
		standing = Never
	}
	return standing, until
}

// seen is At by what was seen.
func (e *Elements) seen(position uint32) (standing Standing, until uint32) {
	i := sort.Search(len(e.runs), func(i int) bool { return e.runs[i].until > position })
	if i == len(e.runs) {
		return Pending, command.MaxCount
	}
	return e.runs[i].standing, e.runs[i].until
}

// Forget notes that the job is no longer kept: what is pending counts as ended otherwise.
func (e *Elements) Forget() {
	if n := len(e.runs); n == 0 || e.runs[n-1].standing != Pending {
		e.Add(1, Pending) // so that the record tells it, too
	}
	e.Unknown = true
}

// Over reports whether none of them is pending: nothing changes any more.
func (e *Elements) Over(count uint32) bool {
	if e.Unknown {
		return true
	}
	n := len(e.runs)
	if n == 0 || e.runs[n-1].until < count {
		return false
	}
	for _, r := range e.runs {
		if r.standing == Pending {
			return false
		}
	}
	return true
}

// failed reports whether one of them has ended otherwise than by success.
func (e *Elements) failed() bool {
	return slices.ContainsFunc(e.runs, func(r element) bool { return r.standing == Never })
}

// Why says why a task is cancelled that waits for the one at a position.
func (e *Elements) Why(id command.JobID, position uint32) string {
	if standing, _ := e.seen(position); standing == Pending {
		return fmt.Sprintf("waited for job %s task by task, which is no longer kept, and how it ended is not known", id)
	}
	return fmt.Sprintf("waited for the task at its place of job %s, which did not succeed", id)
}

// Encode returns a record of elements that are over, for DecodeElements.
func (e *Elements) Encode() []byte {
	var b []byte
	from := uint32(0)
	for _, r := range e.runs {
		b = binary.AppendUvarint(b, uint64(r.until-from)<<2|uint64(r.standing))
		from = r.until
	}
	return b
}

// DecodeElements reads such a record. Pending ones are of a job that was forgotten before their end was seen.
func DecodeElements(b []byte) (e Elements, err error) {
	e.Unknown = len(b) == 0
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		count, standing := v>>2, Standing(v&3)
		if n <= 0 || count == 0 || count > command.MaxCount || standing > Never {
			return e, errors.New("malformed record of how a job's tasks ended")
		}
		e.Add(uint32(count), standing)
		e.Unknown = e.Unknown || standing == Pending
		b = b[n:]
	}
	return e, nil
}
