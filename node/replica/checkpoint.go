package replica

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
)

const (
	// checkpointEveryMs is the log time between two checkpoints of level 0. One of
	// level n lies on a multiple of checkpointEveryMs << n.
	checkpointEveryMs = 5000
	// maxCheckpointLevel leaves eleven minutes between two checkpoints at most.
	maxCheckpointLevel = 7
	// keptAtLevel checkpoints of each level are remembered, so that two replicas of
	// different levels have some in common.
	keptAtLevel = 4
	// checkpointShare is the part of a core that hashing may take: 1/checkpointShare.
	checkpointShare = 200
)

// crossedLevel returns the level of the checkpoint between two log times, −1 if
// there is none: the greatest one that has a multiple in (before, after]. Levels
// are nested: who takes the checkpoints of one level has all those of the levels
// above it.
func crossedLevel(before, after int64) int {
	level := -1
	for level < maxCheckpointLevel {
		every := int64(checkpointEveryMs) << (level + 1)
		if before/every == after/every {
			break
		}
		level++
	}
	return level
}

// A counted checkpoint is of the history alone, and comes by the number of its entry: one of level n is at a multiple
// of countedEvery << (countedShift·n). It needs no log time, which the leader may hold.
const (
	countedEvery    = 64
	countedShift    = 3
	maxCountedLevel = 3
)

// countedLevel returns the level of an entry's counted checkpoint, −1 if it has none.
func countedLevel(entry uint64) int {
	if entry%countedEvery != 0 {
		return -1
	}
	return min(bits.TrailingZeros64(entry/countedEvery)/countedShift, maxCountedLevel)
}

// affordableLevel returns the lowest level at which a hash that takes so long costs
// no more than its share.
func affordableLevel(took time.Duration) int {
	level := 0
	for level < maxCheckpointLevel && time.Duration(checkpointEveryMs<<level)*time.Millisecond < checkpointShare*took {
		level++
	}
	return level
}

// checkpointRing remembers checkpoints: of each level, and those above it, the
// newest keptAtLevel.
type checkpointRing struct {
	// marks stand by entry. Invariant: at most keptAtLevel of each level.
	marks []checkpointMark
}

// checkpointMark is a checkpoint and its level.
type checkpointMark struct {
	coord.Checkpoint
	level int
}

// add remembers a checkpoint newer than all before.
func (r *checkpointRing) add(m checkpointMark) {
	var count [maxCheckpointLevel + 1]int
	kept := make([]checkpointMark, 0, len(r.marks)+1)
	all := append(r.marks, m)
	for i := len(all) - 1; i >= 0; i-- {
		keep := false
		for level := 0; level <= all[i].level; level++ {
			keep = keep || count[level] < keptAtLevel
			count[level]++
		}
		if keep {
			kept = append(kept, all[i])
		}
	}
	slices.Reverse(kept)
	r.marks = kept
}

// hashed adds the state's hash to a checkpoint that is remembered still.
func (r *checkpointRing) hashed(entry uint64, hash [32]byte) {
	for i := range r.marks {
		if r.marks[i].Entry == entry {
			r.marks[i].Hash, r.marks[i].Hashed = hash, true
		}
	}
}

// byEntry returns copies of what rings remember. REQUIRES: no entry is in two of them.
func byEntry(rings ...*checkpointRing) (out []coord.Checkpoint) {
	for _, r := range rings {
		for i := range r.marks {
			out = append(out, r.marks[i].Checkpoint)
		}
	}
	slices.SortFunc(out, func(a, b coord.Checkpoint) int { return cmp.Compare(a.Entry, b.Entry) })
	return out
}
