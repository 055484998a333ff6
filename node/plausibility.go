package node

import "time"

// Plausibility is what this broker has seen of what sites report and nobody can prove.
type Plausibility struct {
	// Since is when it began to look; zero: not yet.
	Since time.Time
	// HalfLife is after how long what was seen counts half.
	HalfLife time.Duration
	Sites    []SitePlausibility // by name
}

// SitePlausibility is about one site, of what it did for other sites. Old counts fade, so they are no whole numbers.
type SitePlausibility struct {
	Site string
	// Runs are those of other sites' tasks that the ledger has charged. Beyond of them do not fit in the log's time, by
	// Excess together.
	Runs, Beyond float64
	Excess       time.Duration
	Slowness     Slowness
	// Declined are other sites' tasks that it handed back, Unstarted those that it never began.
	Declined, Unstarted float64
	// In core-hours: what it lent by log time, what it was credited for by other sites' runs, and what lay wholly idle
	// while tasks of other sites waited that would have fitted.
	Lent, Ran, Idle float64
	// Notes say in plain words what stands out; none: nothing does.
	Notes []string
}

// Slowness compares how long tasks of the same jobs took at a site and at others. Jobs of the site itself do not count.
type Slowness struct {
	// Tasks at the site, Elsewhere the others of the same jobs, Jobs how many, of so many Owners.
	Tasks, Elsewhere, Jobs float64
	Owners                 int
	// Factor is how many times as long they took at the site, AtLeast a bound that chance rarely passes; both 0: of
	// too few tasks to say.
	Factor, AtLeast float64
}
