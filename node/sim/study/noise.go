package study

import (
	"cmp"
	"math"
	"slices"
)

// block is what instances share that say nothing new of each other: the jobs of
// one period of one log, whatever the load and the mapping.
type block struct {
	log    string
	period int
}

// Noise returns how far shares would move if other periods had been drawn: twice their
// standard error, by leaving out one period of one log at a time (a jackknife). Of
// fewer than two periods it is NaN.
func (t *Tally) Noise() []float64 { return t.NoiseAgainst(nil) }

// NoiseAgainst returns the noise of the change of shares from base to t, which played
// the same periods; nil: of the shares themselves.
func (t *Tally) NoiseAgainst(base *Tally) []float64 {
	blocks := sortedBlocks(t.blocks)
	left := make([][]float64, len(blocks)) // shares, or changes, without each block
	for i, b := range blocks {
		left[i] = sharesOf(t.Scores, t.blocks[b])
		if base != nil {
			for k, share := range sharesOf(base.Scores, base.blocks[b]) {
				left[i][k] -= share
			}
		}
	}
	noise := make([]float64, len(t.Policies))
	for k := range noise {
		noise[k] = 2 * deviation(left, k)
	}
	return noise
}

// sortedBlocks returns blocks in an order of their own, so that sums of floats are
// the same each time.
func sortedBlocks[V any](of map[block]V) []block {
	var blocks []block
	for b := range of {
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return cmp.Or(cmp.Compare(a.log, b.log),
			cmp.Compare(a.period, b.period))
	})
	return blocks
}

// deviation returns the jackknife's standard error of column k.
func deviation(left [][]float64, k int) float64 {
	n := float64(len(left))
	if n < 2 {
		return math.NaN()
	}
	mean, sum := 0.0, 0.0
	for _, row := range left {
		mean += row[k] / n
	}
	for _, row := range left {
		sum += (row[k] - mean) * (row[k] - mean)
	}
	return math.Sqrt((n - 1) / n * sum)
}
