package wire

import "time"

// Plausibility is what the asked broker has seen of what sites report and nobody can prove.
type Plausibility struct {
	Since           *time.Time         `json:"since" doc:"when the asked broker began to look; null: not yet"`
	HalfLifeSeconds float64            `json:"half_life_seconds" doc:"after so long what was seen counts half: counts are no whole numbers"`
	Sites           []SitePlausibility `json:"sites"`
	Freshness
}

// SitePlausibility is about what one site did for other sites.
type SitePlausibility struct {
	Site          string    `json:"site"`
	Notes         []string  `json:"notes" doc:"what stands out, for people; empty: nothing does. It proves nothing"`
	Runs          float64   `json:"runs" doc:"runs of other sites' tasks that the ledger has charged"`
	Beyond        float64   `json:"beyond" doc:"runs of these that do not fit in the log's time, delays and outages allowed"`
	ExcessSeconds float64   `json:"excess_seconds" doc:"by which those do not fit, together"`
	Slowness      *Slowness `json:"slowness" doc:"null: too few tasks to say"`
	Declined      float64   `json:"declined" doc:"other sites' tasks that it handed back"`
	Unstarted     float64   `json:"unstarted" doc:"other sites' tasks that it never began"`
	Lent          float64   `json:"lent_core_hours" doc:"that it has offered, by log time"`
	Ran           float64   `json:"ran_core_hours" doc:"that it was credited for, of other sites' tasks"`
	Idle          float64   `json:"idle_core_hours" doc:"lent while nothing at all ran there and another site's task waited that would have fitted, those that it has declined too"`
}

// Slowness compares run times of tasks of the same jobs, of other owners than the site.
type Slowness struct {
	Factor    float64 `json:"factor" doc:"how many times as long they took here as elsewhere"`
	AtLeast   float64 `json:"at_least" doc:"a bound below it that chance rarely passes"`
	Tasks     float64 `json:"tasks" doc:"compared here"`
	Elsewhere float64 `json:"elsewhere" doc:"of the same jobs at other sites"`
	Jobs      float64 `json:"jobs"`
	Owners    int     `json:"owners" doc:"of these jobs; their tasks know where they run"`
}
