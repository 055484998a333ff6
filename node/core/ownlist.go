package core

import (
	"iter"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
)

// OwnSteps bounds the jobs and tasks that one look at the core passes over, so
// that a list holds up nothing there.
const OwnSteps = 10_000

// OwnRecords copies up to limit of the jobs that only this broker knows, in a
// state ("" = any) and below a number (0 = all), greatest first, and returns the
// number to go on below (0 = no more). It takes a bounded number of steps.
func (c *Core) OwnRecords(below uint64, state string, limit int) (list []OwnRecord, rest uint64) {
	steps := 0
	for num := range c.ownNumbers(below) {
		if len(list) == limit || steps >= OwnSteps {
			return list, rest
		}
		steps++
		rest = num
		if state == "" || state == c.ownState(num) {
			r, looked, _ := c.OwnRecord(num)
			steps += looked
			list = append(list, r)
		}
	}
	return list, 0
}

// ownNumbers yields the numbers of the jobs that only this broker knows, those
// below a number (0 = all), greatest first.
func (c *Core) ownNumbers(below uint64) iter.Seq[uint64] {
	home, pending := numbersBelow(c.home.order, below), numbersBelow(c.pubs.nums, below)
	return func(yield func(uint64) bool) {
		for len(home)+len(pending) > 0 {
			from := &home
			if h, p := len(home), len(pending); h == 0 || p > 0 && pending[p-1] > home[h-1] {
				from = &pending
			}
			last := len(*from) - 1
			num := (*from)[last]
			*from = (*from)[:last]
			if !yield(num) {
				return
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

// ownState returns what a list filters by.
func (c *Core) ownState(num uint64) string {
	if h := c.home.jobs[num]; h != nil {
		return h.state().String()
	}
	return fsm.Queued.String()
}
