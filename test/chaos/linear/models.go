package linear

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// model makes one whose states can be compared by ==.
func model[S comparable](first S, step func(S, Op) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			s, sOK := state.(S)
			o, oOK := input.(Op)
			if !sOK || !oOK {
				return false, state
			}
			return step(s, o)
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// registerModel is the policy: a read shows what was set last.
func registerModel() porcupine.Model {
	return model(int64(0), func(now int64, o Op) (bool, int64) {
		if o.Kind == SetPolicy {
			return true, o.Value
		}
		return o.Value == now, now
	})
}

// view is the policy as one broker shows it, which others may set at any time
// and which may be old: but what it has replaced does not come back, since no
// value is set twice.
type view struct {
	now  int64
	gone string // values, each between commas
}

func viewModel() porcupine.Model { return model(view{gone: ","}, view.step) }

func (v view) step(o Op) (bool, view) {
	if o.Value == v.now {
		return true, v
	}
	text := strconv.FormatInt(o.Value, 10) + ","
	if o.Kind == GetPolicy && strings.Contains(v.gone, ","+text) {
		return false, v
	}
	return true, view{o.Value, v.gone + strconv.FormatInt(v.now, 10) + ","}
}

// job is one job: its id, "" if it is there and nobody was told, and its phase.
type job struct {
	id    string
	phase Phase
}

func jobModel() porcupine.Model { return model(job{}, job.step) }

func (j job) step(o Op) (bool, job) {
	switch o.Kind {
	case Submit:
		return j.submit(o)
	case Cancel:
		ok, next := j.is(o.ID)
		if !ok {
			return !o.Answered, j // without an answer it may have done nothing
		}
		return true, job{next.id, Over}
	default:
		return j.look(o)
	}
}

// submit makes the job, or shows the one that the key made before.
func (j job) submit(o Op) (bool, job) {
	switch {
	case j.phase == Absent && o.Answered:
		return true, job{o.ID, Live}
	case j.phase == Absent:
		return true, job{"", Live}
	case !o.Answered:
		return true, j
	}
	return j.is(o.ID)
}

// look at the job; that its tasks have ended shows only there.
func (j job) look(o Op) (bool, job) {
	if o.Phase == Absent {
		return j.phase == Absent, j
	}
	ok, next := j.is(o.ID)
	if !ok || o.Phase == Double || (o.Phase == Live && j.phase == Over) {
		return false, j
	}
	return true, job{next.id, o.Phase}
}

// is compares the job's id with one that was shown or acknowledged.
func (j job) is(id string) (bool, job) {
	if j.phase == Absent || (j.id != "" && j.id != id) {
		return false, j
	}
	return true, job{id, j.phase}
}
