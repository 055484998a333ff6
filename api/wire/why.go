package wire

// Why says why a job waits, or what would become of one that is only asked
// about (dry_run).
type Why struct {
	ID          string      `json:"id" doc:"empty for a dry run"`
	Site        string      `json:"site" doc:"the job's owner"`
	State       string      `json:"state" doc:"of the job; of a dry run what it would be: running = starts at once at home"`
	Waiting     uint32      `json:"waiting" doc:"tasks"`
	Summary     string      `json:"summary" doc:"all of it in one line"`
	User        string      `json:"user,omitempty" doc:"whose the job is; told by its owner's broker alone"`
	CancelledBy string      `json:"cancelled_by,omitempty" doc:"who had the job cancelled: a user, or the operator; told by its owner's broker until it is restarted"`
	Priority    int32       `json:"priority" doc:"of the job, among its owner's own"`
	Notices     []Notice    `json:"notices,omitempty" doc:"of its end that were not delivered"`
	Turn        string      `json:"turn" doc:"which site goes first, and by how much; empty if nothing waits in the federation's queue, or no site can run it now"`
	Ahead       *WhyAhead   `json:"ahead" doc:"what goes first as things stand; null if nothing waits in the federation's queue"`
	Turns       []WhyTurn   `json:"turns" doc:"sites with tasks that want the same machines, whose turn it is first; 20 at most, and the owner"`
	Sites       []WhySite   `json:"sites" doc:"why each site does not run it"`
	Estimate    WhyEstimate `json:"estimate" doc:"of the next task's start"`
	Freshness
}

// WhyAhead counts what goes first.
type WhyAhead struct {
	Place  uint64  `json:"place" doc:"in the line, from 1"`
	Own    uint64  `json:"own" doc:"tasks of the same site"`
	Others uint64  `json:"others" doc:"tasks of other sites"`
	CPU    float64 `json:"cpu" doc:"cores that they need together"`
	Sites  int     `json:"sites" doc:"whose turn is before"`
	Exact  bool    `json:"exact" doc:"false: own is counted by a sample"`
}

// WhyTurn is one site's claim; decimal strings in the ledger's unit.
type WhyTurn struct {
	Site         string  `json:"site"`
	Place        int     `json:"place" doc:"1 goes first"`
	Waiting      uint64  `json:"waiting" doc:"tasks that want the same machines"`
	OldestMs     int64   `json:"oldest_ms" doc:"log time, in ms, at which the oldest was queued"`
	Contribution string  `json:"contribution"`
	Utility      string  `json:"utility"`
	Priority     string  `json:"priority"`
	Usage        string  `json:"usage,omitempty" doc:"FAIRSHARE: what it used"`
	Share        float64 `json:"share,omitempty" doc:"FAIRSHARE: cores that it contributes now"`
	StartsAgo    *uint64 `json:"starts_ago,omitempty" doc:"ROUND_ROBIN: how many starts ago its latest was; left out = never"`
	Excess       string  `json:"excess,omitempty" doc:"ALONE, CE, SHAPLEY: what its tasks have waited and will, about, beyond their fair share, in cores times quanta"`
	Tied         bool    `json:"tied" doc:"it stands equal to the job's owner"`
}

// WhySite says why one site does not run the job.
type WhySite struct {
	Site     string    `json:"site"`
	Why      string    `json:"why" enum:"free,turn,full,reserved,declined,suspect,shape,labels,network,files,kind,closed,lost,rule,left,unknown"`
	Text     string    `json:"text"`
	Machines int       `json:"machines" doc:"that could run a task if they were empty"`
	Slots    uint64    `json:"slots" doc:"tasks that fit now"`
	Machine  string    `json:"machine,omitempty" doc:"the one with the least missing"`
	Short    Resources `json:"short" doc:"what it is short of for one task"`
	Lacks    string    `json:"lacks,omitempty" doc:"labels: the selectors that it does not satisfy, and what it has instead"`
	First    string    `json:"first,omitempty" doc:"the job that takes the first room there, or for which it is held"`
	Near     string    `json:"near,omitempty" doc:"unknown: the site whose name is nearest"`
}

// WhyEstimate is when the job's next task will probably start, from now on.
type WhyEstimate struct {
	P50        *float64 `json:"p50_seconds" doc:"it starts within so long with even odds; null = unknown"`
	P90        *float64 `json:"p90_seconds" doc:"it is meant to start within so long nine times of ten; p90_held tells how often it did"`
	Unknown    string   `json:"unknown,omitempty" doc:"why there is no estimate"`
	Waits      int      `json:"from_waits" doc:"of how many earlier waits it is made; 0 with p90_seconds 0: it starts at once, as things stand"`
	Calibrated bool     `json:"calibrated" doc:"these waits had about as much ahead; else they are of all kinds"`
	Starts     int      `json:"starts" doc:"of how many of this broker's latest estimates it is known how they came out"`
	Held       *float64 `json:"p90_held" doc:"what part of these started within their p90; null without any"`
}

// Calibration is how the asked broker's latest estimates came out, over restarts.
type Calibration struct {
	Starts int      `json:"starts" doc:"of how many of this broker's latest estimates it is known how they came out, 1000 at most"`
	Held   *float64 `json:"p90_held" doc:"what part of these started within their p90; null without any"`
	Open   int      `json:"open" doc:"estimates that wait for their start"`
}
