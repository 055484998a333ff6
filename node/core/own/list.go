package own

import (
	"iter"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
)

// Steps bounds the jobs and tasks that one look at the core passes over, so
// that a list holds up nothing there.
const Steps = 10_000

// Records copies up to limit of the jobs that only this broker knows, in a
// state ("" = any) and below a number (0 = all), greatest first, and returns the
// number to go on below (0 = no more). It takes a bounded number of steps.
func (o *Jobs) Records(below uint64, state string, limit int) (list []Record, rest uint64) {
	steps := 0
	for num := range o.numbers(below) {
		if len(list) == limit || steps >= Steps {
			return list, rest
		}
		steps++
		rest = num
		if state == "" || state == o.state(num) {
			r, looked, _ := o.Record(num)
			steps += looked
			list = append(list, r)
		}
	}
	return list, 0
}

// Standing reports whether only this broker knows a job, and whether that has ended.
func (o *Jobs) Standing(num uint64) (known, ended bool) {
	if h := o.home.Find(num); h != nil {
		return true, h.State().Ended()
	}
	if a := o.after.Find(num); a != nil {
		return true, !a.Held()
	}
	return o.pubs.Find(num) != nil, false
}

// numbers yields the numbers of the jobs that only this broker knows, those
// below a number (0 = all), greatest first.
func (o *Jobs) numbers(below uint64) iter.Seq[uint64] {
	home := numbersBelow(o.home.Numbers(), below)
	return func(yield func(uint64) bool) {
		pub, isPub := o.pubs.LastBelow(below)
		held, isHeld := o.after.LastBelow(below)
		for isPub || isHeld || len(home) > 0 {
			num := max(pub, held)
			if last := len(home) - 1; last >= 0 && home[last] > num {
				num, home = home[last], home[:last]
			}
			if !yield(num) {
				return
			}
			if isPub && num == pub {
				pub, isPub = o.pubs.LastBelow(num)
			}
			if isHeld && num == held {
				held, isHeld = o.after.LastBelow(num)
			}
		}
	}
}

// numbersBelow cuts ascending numbers; 0 = not at all.
func numbersBelow(nums []uint64, below uint64) []uint64 {
	if below > 0 {
		i, _ := slices.BinarySearch(nums, below)
		nums = nums[:i]
	}
	return nums
}

// state returns what a list filters by.
func (o *Jobs) state(num uint64) string {
	if h := o.home.Find(num); h != nil {
		return h.State().String()
	}
	if a := o.after.Find(num); a != nil {
		return a.State().String()
	}
	return fsm.Queued.String()
}
