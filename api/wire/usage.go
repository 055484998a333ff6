package wire

import "time"

// JobUsage sums up what the ended attempts of a job have used, as their sites measured it.
type JobUsage struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Attempts uint64     `json:"attempts" doc:"that ended, and that this broker's archive has"`
	Tasks    uint64     `json:"tasks" doc:"of the job that ended with them"`
	First    *time.Time `json:"first" doc:"when the first of them began"`
	Last     *time.Time `json:"last" doc:"when the last of them ended"`
	// CoreHours are cores times charged hours.
	CoreHours float64 `json:"core_hours" doc:"cores times hours, as the ledger charges them"`

	CPUHours   float64  `json:"cpu_hours" doc:"processor time, of the attempts of which it is known"`
	UserHours  float64  `json:"cpu_user_hours" doc:"the part of it in the tasks' own code"`
	Efficiency *float64 `json:"cpu_efficiency" doc:"processor time by cores times hours, of those attempts; null = of none it is known"`

	MemoryMiB      int64    `json:"memory_mib" doc:"that one task may use; 0 = no bound"`
	PeakBytes      *int64   `json:"peak_memory_bytes" doc:"of the attempt that used most; null = not known"`
	MeanPeakBytes  *int64   `json:"mean_peak_memory_bytes" doc:"mean of the attempts' greatest memory"`
	PeakEfficiency *float64 `json:"memory_efficiency" doc:"the greatest peak by memory_mib; null = not known, or no bound"`

	InBytes  int64 `json:"in_bytes" doc:"of the files that the attempts were given"`
	OutBytes int64 `json:"out_bytes" doc:"of the files that they have left"`

	MeasuredBy map[string]uint64 `json:"measured_by" doc:"attempts by what measured them: unknown, cgroup, rusage, container-engine, kubernetes"`
	Gaps       []ReportGap       `json:"gaps" doc:"of the archive, in which attempts may be missing"`
}
