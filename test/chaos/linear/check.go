package linear

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cloudshare/cloudshare/test/chaos/check"
)

// ErrUndecided says that the search was given up: it is a failure of the check,
// not a pass.
var ErrUndecided = errors.New("the search for an order of operations was given up")

// Check looks for an order of all operations that explains what each client saw,
// object by object, each for at most limit. For an object that has none, a
// picture is written into dir.
func Check(history []Op, limit time.Duration, dir string) ([]check.Violation, error) {
	var found []check.Violation
	var errs []error
	for _, ob := range objects(history) {
		switch porcupine.CheckOperationsTimeout(ob.model, ob.operations(), limit) {
		case porcupine.Ok:
		case porcupine.Illegal:
			v, err := ob.explain(limit, dir)
			found, errs = append(found, v), append(errs, err)
		default:
			errs = append(errs, fmt.Errorf("%w after %s: %s, %d operations", ErrUndecided, limit, ob.name, len(ob.ops)))
		}
	}
	return found, errors.Join(errs...)
}

// explain names the first answer that no order explains, and draws the history
// up to it.
func (ob object) explain(limit time.Duration, dir string) (check.Violation, error) {
	last, prefix := ob.firstWrong(limit)
	path := filepath.Join(dir, ob.file())
	_, info := porcupine.CheckOperationsVerbose(prefix.model, prefix.operations(), limit)
	err := porcupine.VisualizePath(prefix.model, info, path)
	if err != nil {
		err = fmt.Errorf("draw %s: %w", ob.name, err)
	}
	return check.Violation{Rule: check.Linear, Text: fmt.Sprintf("%s: no order of %d operations explains that at %.3fs %s; see %s",
		ob.name, len(prefix.ops), last.Return.Seconds(), last, path)}, err
}

// firstWrong returns the answer with which the history stops being linearizable,
// and the history up to it: prefixes of linearizable ones are linearizable.
func (ob object) firstWrong(limit time.Duration) (Op, object) {
	var ends []Op
	for _, o := range ob.ops {
		if o.Answered {
			ends = append(ends, o)
		}
	}
	slices.SortFunc(ends, func(a, b Op) int { return cmp.Compare(a.Return, b.Return) })
	i, _ := slices.BinarySearchFunc(ends, true, func(o Op, _ bool) int {
		p := ob.until(o.Return)
		if porcupine.CheckOperationsTimeout(p.model, p.operations(), limit) == porcupine.Illegal {
			return 0
		}
		return -1
	})
	i = min(i, len(ends)-1)
	return ends[i], ob.until(ends[i].Return)
}

// until returns the history as it was known at a moment.
func (ob object) until(now time.Duration) object {
	out := ob
	out.ops = nil
	for _, o := range ob.ops {
		if o.Answered && o.Return > now {
			o.Answered = false
		}
		if o.Call <= now && (o.Answered || !o.isRead()) {
			out.ops = append(out.ops, o)
		}
	}
	return out
}
