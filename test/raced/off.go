//go:build !race

// Package raced lets a test know of the race detector, which makes all several times slower:
// under it long computations play fewer cases, and `make test` plays them once more without
// it, with all that there is.
package raced

// Enabled says whether the race detector is on.
const Enabled = false
