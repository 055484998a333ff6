package archive

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// stepBits of a histogram's steps an octave: a quantile is right to 1/64.
const stepBits = 6

// histogram counts durations to the millisecond in constant memory.
type histogram struct {
	counts map[uint16]uint64
	n      uint64
	sumMs  uint64
	// least and most of all values: no quantile lies outside.
	least, most uint64
}

// bucketOf is exact below 128 ms.
func bucketOf(ms uint64) uint16 {
	if ms < 1<<(stepBits+1) {
		return uint16(ms)
	}
	shift := bits.Len64(ms) - stepBits - 1
	return uint16(shift<<stepBits) + uint16(ms>>shift)
}

// middleOf returns the middle of a bucket.
func middleOf(b uint16) uint64 {
	if b < 1<<(stepBits+1) {
		return uint64(b)
	}
	shift := int(b>>stepBits) - 1
	return (uint64(b)-uint64(shift)<<stepBits)<<shift + (1<<shift)/2
}

func (h *histogram) add(d time.Duration) {
	ms := uint64(max(0, d.Milliseconds()))
	if h.counts == nil {
		h.counts, h.least = map[uint16]uint64{}, ms
	}
	h.least, h.most = min(h.least, ms), max(h.most, ms)
	h.counts[bucketOf(ms)]++
	h.n++
	h.sumMs += min(ms, math.MaxUint64-h.sumMs)
}

// quantile returns the smallest value that at least part of all do not exceed.
func (h *histogram) quantile(part float64) time.Duration {
	rank := uint64(math.Ceil(part * float64(h.n)))
	keys := make([]uint16, 0, len(h.counts))
	for b := range h.counts {
		keys = append(keys, b)
	}
	slices.Sort(keys)
	var seen uint64
	for _, b := range keys {
		if seen += h.counts[b]; seen >= max(1, rank) {
			return time.Duration(min(max(middleOf(b), h.least), h.most)) * time.Millisecond
		}
	}
	return 0
}

func (h *histogram) mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return time.Duration(h.sumMs/h.n) * time.Millisecond
}
