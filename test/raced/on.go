//go:build race

package raced

// Enabled says whether the race detector is on.
const Enabled = true
