package wire

import "time"

// Report sums up a broker's archive of ended attempts.
type Report struct {
	Site  string      `json:"site" doc:"whose broker's archive it is"`
	Scope string      `json:"scope" doc:"own: only what this site owned or ran; all: everything"`
	By    string      `json:"by"`
	First *time.Time  `json:"first" doc:"earliest end found; null = nothing was found"`
	Last  *time.Time  `json:"last"`
	Rows  []ReportRow `json:"rows" doc:"at most 1000, by key, and one for the others"`
	Total ReportRow   `json:"total" doc:"from this site's point of view"`
	Gaps  []ReportGap `json:"gaps" doc:"stretches that the archive does not know"`
}

// ReportRow is one part of a report. Core-hours are cores times charged hours.
type ReportRow struct {
	Key       string      `json:"key" doc:"a site, a user of this site, a label's value, or when"`
	Own       float64     `json:"own_core_hours" doc:"its own tasks on its own machines"`
	Lent      float64     `json:"lent_core_hours" doc:"other sites' tasks on its machines"`
	Used      float64     `json:"used_core_hours" doc:"its tasks on other sites' machines"`
	Others    float64     `json:"others_core_hours" doc:"between other sites; only with scope all, and not by site"`
	Attempts  uint64      `json:"attempts" doc:"that ran"`
	Tasks     uint64      `json:"tasks" doc:"that ended, by their owner"`
	Succeeded uint64      `json:"succeeded"`
	Failed    uint64      `json:"failed"`
	Cancelled uint64      `json:"cancelled"`
	Lost      uint64      `json:"lost"`
	Usage     ReportUsage `json:"usage" doc:"what the attempts have used, as the sites measured it that ran them"`
	Wait      ReportWait  `json:"wait" doc:"seconds from the queue to the start; quantiles are right to 1.6 %"`
}

// ReportUsage is what attempts have used. What is null is not known of any of them.
type ReportUsage struct {
	CPUHours   float64  `json:"cpu_hours" doc:"processor time, of the attempts of which it is known"`
	Efficiency *float64 `json:"cpu_efficiency" doc:"processor time by cores times hours, of those attempts"`
	PeakBytes  *int64   `json:"peak_memory_bytes" doc:"of the attempt that used most"`
	Memory     *float64 `json:"memory_efficiency" doc:"the attempts' greatest memory by what they had asked for, of those of which both are known"`
	InBytes    int64    `json:"in_bytes" doc:"of the files that the attempts were given"`
	OutBytes   int64    `json:"out_bytes" doc:"of the files that they have left"`
}

// ReportWait is in seconds; null if nothing started.
type ReportWait struct {
	Count uint64   `json:"count"`
	Mean  *float64 `json:"mean"`
	P50   *float64 `json:"p50"`
	P95   *float64 `json:"p95"`
}

// ReportGap is a stretch that the archive does not know.
type ReportGap struct {
	FromEntry uint64     `json:"from_entry"`
	ToEntry   uint64     `json:"to_entry" doc:"entries (from, to] are missing; 0 = not known"`
	Since     *time.Time `json:"since"`
	Until     *time.Time `json:"until"`
	Reason    string     `json:"reason"`
}
