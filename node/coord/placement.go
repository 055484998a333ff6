package coord

import "time"

// Placed is a [Log] whose voters know how far they are from each other.
type Placed interface {
	Placement() Placement
}

// Placement is where the voters are, as this member knows it; zero if it is none, or knows nothing yet.
type Placement struct {
	// Trips are the round trips from this member to each other voter, the least measured lately.
	Trips map[string]time.Duration
	// Majorities are the round trips from each voter to the farthest of its nearest majority, of those for which both
	// ends have said enough.
	Majorities map[string]time.Duration
	// Turns are the voters that lead in turn now, sorted: those whose majority is about as near as the nearest.
	Turns []string
}
