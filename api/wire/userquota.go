package wire

// UserQuota is what one user of a site uses and may use there.
type UserQuota struct {
	User   string     `json:"user" doc:"or *: the limits of users that have none of their own"`
	Own    bool       `json:"own" doc:"the limits are the user's own, not those of *"`
	From   string     `json:"from" enum:"command,configuration,everybody,none" doc:"where the limits are from: set by command until cleared, the broker's configuration, those of *; none = * has none"`
	Limits UserLimits `json:"limits"`
	// What is used of them.
	Tasks       uint64 `json:"tasks" doc:"of its jobs, that have not ended"`
	MilliCPU    uint64 `json:"milli_cpu" doc:"that these need, in thousandths of a core"`
	Bytes       uint64 `json:"bytes" doc:"of the commands, environments and lists of its jobs that have not ended"`
	Held        uint64 `json:"held" doc:"of the tasks, that wait at the site for the user's turn"`
	CoreSeconds uint64 `json:"core_seconds" doc:"its tasks have run, sampled; half is forgotten each week, or in the user_half_life of the broker"`

	Note string `json:"note,omitempty" doc:"of a change: a warning, if nothing at the site has the user's name yet"`
}

// UserLimits are the quotas of a user; 0 is without limit.
type UserLimits struct {
	Tasks    uint64 `json:"tasks"`
	MilliCPU uint64 `json:"milli_cpu"`
	Bytes    uint64 `json:"bytes"`

	JobsPerMinute uint64 `json:"jobs_per_minute" doc:"that are taken; all may come at once"`
	Shares        uint64 `json:"shares" doc:"of the site's turns, in relation to other users; 0 is 1"`
}

// UserLimitsRequest changes the quotas of a user; what is left out stays.
type UserLimitsRequest struct {
	Tasks    *uint64 `json:"tasks,omitempty" required:"false" doc:"that have not ended; 0 = no limit"`
	MilliCPU *uint64 `json:"milli_cpu,omitempty" required:"false" doc:"that these may need, in thousandths of a core; 0 = no limit"`
	Bytes    *uint64 `json:"bytes,omitempty" required:"false" doc:"of jobs that have not ended; 0 = no limit"`
	// JobsPerMinute may all come at once.
	JobsPerMinute *uint64 `json:"jobs_per_minute,omitempty" required:"false" doc:"that are taken; all may come at once; 0 = no limit"`

	Shares *uint64 `json:"shares,omitempty" required:"false" doc:"of the site's turns, in relation to other users; 0 is 1"`

	Clear bool `json:"clear,omitempty" required:"false" doc:"forget the user's own limits first: those of * hold again"`
}
