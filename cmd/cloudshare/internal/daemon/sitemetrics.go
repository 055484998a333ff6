package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/broker"
)

// siteCollector gives how the site stands with the federation to /metrics: what
// an alert asks for.
type siteCollector struct {
	broker   *broker.Broker
	handlers []executor.Handler
}

var _ prometheus.Collector = siteCollector{}

var (
	readyDesc        = prometheus.NewDesc("cloudshare_ready", "1 as long as /readyz answers that it is, else 0.", nil, nil)
	leadKnownDesc    = prometheus.NewDesc("cloudshare_lead_known", "1 as long as a leader is known, else 0.", nil, nil)
	sitesDesc        = prometheus.NewDesc("cloudshare_sites", "Sites of the federation by state.", []string{"state"}, nil)
	votersDesc       = prometheus.NewDesc("cloudshare_voters", "Sites that vote, or may lead.", nil, nil)
	queueDesc        = prometheus.NewDesc("cloudshare_queue_tasks", "Tasks that wait in the federation's queue, this site's own and those of others.", []string{"owner"}, nil)
	siteCoresDesc    = prometheus.NewDesc("cloudshare_site_cores", "This site's cores by use: all there are, lent out, at work for the federation, at work at home.", []string{"use"}, nil)
	comparedDesc     = prometheus.NewDesc("cloudshare_replica_compared_entry", "Newest log entry at which this broker's state was compared with another one's, 0 = none yet.", nil, nil)
	comparedAgeDesc  = prometheus.NewDesc("cloudshare_replica_compared_age_seconds", "Time since this broker's state was compared with another one's; 0 while there is nobody to compare with.", nil, nil)
	liarsDesc        = prometheus.NewDesc("cloudshare_replica_liars", "Sites proven to have signed two different states or histories of one entry of the log.", nil, nil)
	unsureDesc       = prometheus.NewDesc("cloudshare_replica_unsure", "1 while this broker offers nothing and starts nothing for other sites, because its state differs and no majority has the same; else 0.", nil, nil)
	differsDesc      = prometheus.NewDesc("cloudshare_replica_differs", "For each site compared with: 1 if its state or history was another one than this broker's when they were compared last, else 0.", []string{"with"}, nil)
	logTimeDesc      = prometheus.NewDesc("cloudshare_log_time_ahead_seconds", "How far the federation's time, which the leader stamps, has run ahead of this machine's clock.", nil, nil)
	roundTripDesc    = prometheus.NewDesc("cloudshare_voter_round_trip_seconds", "Round trip from this broker, if it votes, to each other voter: the least measured lately; 0 to itself.", []string{"member"}, nil)
	majorityDesc     = prometheus.NewDesc("cloudshare_majority_round_trip_seconds", "Round trip from this broker to the farthest voter of its nearest majority; 0 if it does not vote, or has not measured yet.", nil, nil)
	quotaUsedDesc    = prometheus.NewDesc("cloudshare_quota_used", "What this site uses of its quotas; `cloudshare quota` says what each counts.", []string{"quota"}, nil)
	quotaLimitDesc   = prometheus.NewDesc("cloudshare_quota_limit", "How much this site may use by its quotas.", []string{"quota"}, nil)
	handlerCoresDesc = prometheus.NewDesc("cloudshare_handler_cores", "Cores that a handler has; 0 while what it works on is away.", []string{"handler"}, nil)
)

// Describe implements prometheus.Collector.
func (c siteCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		readyDesc, leadKnownDesc, sitesDesc, votersDesc, queueDesc, siteCoresDesc,
		quotaUsedDesc, quotaLimitDesc, handlerCoresDesc, comparedDesc, comparedAgeDesc, differsDesc, liarsDesc,
		unsureDesc, logTimeDesc, roundTripDesc, majorityDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c siteCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	status := c.broker.Status(false)
	gauge(readyDesc, oneIf(c.broker.Ready() == nil))
	gauge(leadKnownDesc, oneIf(status.Lead != ""))
	gauge(votersDesc, float64(len(status.Voters)))
	c.collectSites(gauge)
	for _, u := range c.broker.Quota() {
		gauge(quotaUsedDesc, float64(u.Used), u.Quota)
		gauge(quotaLimitDesc, float64(u.Limit), u.Quota)
	}
	gauge(roundTripDesc, 0, status.Site)
	for site, took := range status.Placement.Trips {
		gauge(roundTripDesc, took.Seconds(), site)
	}
	gauge(majorityDesc, status.Placement.Majorities[status.Site].Seconds())
	gauge(comparedDesc, float64(status.Compared.Entry))
	gauge(comparedAgeDesc, status.Compared.Age.Seconds())
	gauge(logTimeDesc, status.LogTimeAhead.Seconds())
	gauge(liarsDesc, float64(len(status.Compared.Liars)))
	gauge(unsureDesc, oneIf(status.Compared.Unsure != ""))
	gauge(differsDesc, 0, status.Site) // from itself never: the metric is there from the start
	for _, site := range status.Compared.With {
		gauge(differsDesc, 0, site)
	}
	for _, d := range status.Compared.Differs {
		gauge(differsDesc, 1, d.Site)
	}
	own, others := uint64(0), uint64(0)
	for _, q := range c.broker.Queue() {
		if q.Site == status.Site {
			own += q.Waiting
		} else {
			others += q.Waiting
		}
	}
	gauge(queueDesc, float64(own), "own")
	gauge(queueDesc, float64(others), "others")
	for _, h := range c.handlers {
		var milli int64
		for _, m := range h.Capacity() {
			milli += m.MilliCPU
		}
		gauge(handlerCoresDesc, float64(milli)/1000, h.Name())
	}
}

// collectSites counts the sites, and says how this one's cores are used.
func (c siteCollector) collectSites(gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	count := map[fsm.SiteState]int{}
	var own fsm.SiteView
	for _, s := range c.broker.Sites() {
		count[s.State]++
		if s.ID == c.broker.Site() {
			own = s.SiteView
		}
	}
	for _, state := range []fsm.SiteState{fsm.Alive, fsm.Suspected, fsm.SiteGone, fsm.Left} {
		gauge(sitesDesc, float64(count[state]), state.String())
	}
	for use, r := range map[string]command.Resources{"all": own.Capacity, "lent": own.Exposed, "federation": own.Assigned, "home": own.Home} {
		gauge(siteCoresDesc, float64(r.MilliCPU)/1000, use)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
