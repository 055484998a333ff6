package daemon

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker"
)

// brokerCollector gives the broker's figures to /metrics, read when scraped.
type brokerCollector struct {
	broker *broker.Broker
	descs  []*prometheus.Desc
}

// brokerFigures are the metrics with what they read.
var brokerFigures = []struct {
	name, help string
	kind       prometheus.ValueType
	value      func(node.Metrics) float64
}{
	{"cloudshare_entries_applied", "Number of the last log entry applied here.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Index) }},
	{"cloudshare_journal_syncs_total", "Syncs of the broker's journal.", prometheus.CounterValue, func(m node.Metrics) float64 { return float64(m.JournalSyncs) }},
	{"cloudshare_journal_sync_seconds_total", "Time spent in syncs of the journal.", prometheus.CounterValue, func(m node.Metrics) float64 { return m.JournalSyncSeconds }},
	{"cloudshare_attempts", "Attempts on this site's machines that are not settled.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Attempts) }},
	{"cloudshare_home_waiting_tasks", "Home tasks that wait for room.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.HomeWaiting) }},
	{"cloudshare_publishing_jobs", "Jobs on their way to the federation's queue; those that are held for their users' turns are not.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Publishing) }},
	{"cloudshare_jobs_held_by_hand", "Jobs of this site that a user holds until release.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.HeldByHand) }},
	{"cloudshare_jobs_awaiting_inputs", "Jobs of this site, tasks of workflow engines, that wait until their inputs are here.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.AwaitInputs) }},
	{"cloudshare_gated_tasks", "Tasks of this site's jobs that are held in the federation until this broker releases them.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.GatedTasks) }},
	{"cloudshare_data_free_bytes", "Free space of the data directory's file system, at the last look.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.FreeBytes) }},
	{"cloudshare_dying_attempts", "Attempts of the federation that are lost and may still live; their tasks wait for their stop bounds.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Dying) }},
	{"cloudshare_pending_work", "Pieces of long work that the last entry applied has left for the next ones; nothing is matched before most of them are done.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.PendingWork) }},
	{"cloudshare_unjust_losses_total", "Times that a leader declared this site lost while it had a lease by its own clock, since the broker's start.", prometheus.CounterValue, func(m node.Metrics) float64 { return float64(m.UnjustLosses) }},
	{"cloudshare_idempotency_keys", "Idempotency keys held.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Keys) }},
	{"cloudshare_users_active", "Users of this site with jobs that have not ended.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Users.Users) }},
	{"cloudshare_users_open_jobs", "Jobs of this site's users that have not ended; those of no user are not counted.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Users.Jobs) }},
	{"cloudshare_users_open_tasks", "Tasks of this site's users that have not ended.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Users.Tasks) }},
	{"cloudshare_users_held_tasks", "Tasks of these that are held at this site until it is their users' turn.", prometheus.GaugeValue, func(m node.Metrics) float64 { return float64(m.Users.HeldTasks) }},
}

// estimateFigures tell what the estimates of starts are worth.
var estimateFigures = []struct {
	name, help string
	value      func(node.Calibration) int
}{
	{"cloudshare_estimates_judged", "Latest estimates of a start, at most 1000, of which it is known how they came out.", func(c node.Calibration) int { return c.Starts }},
	{"cloudshare_estimates_p90_held", "Of the judged estimates, those whose task started within the p90.", func(c node.Calibration) int { return c.Held }},
	{"cloudshare_estimates_open", "Estimates that wait for their start.", func(c node.Calibration) int { return c.Open }},
}

// tallyFigures count by handler and kind.
var tallyFigures = []struct {
	desc  *prometheus.Desc
	value func(node.Metrics) []node.Tally
}{
	{
		prometheus.NewDesc("cloudshare_declines_total", "Tasks that were handed back before they ran, home starts too, by handler and class of reason.", []string{"handler", "class"}, nil),
		func(m node.Metrics) []node.Tally { return m.Declined },
	},
	{
		prometheus.NewDesc("cloudshare_attempts_lost_total", "Attempts that this site lost: ended at their fence, vanished, "+
			"orphaned (what watched them, or their network, was gone without a word), or stopped though nobody asked.", []string{"handler", "cause"}, nil),
		func(m node.Metrics) []node.Tally { return m.Lost },
	},
}

// troubledDesc is of machines that rest, see node's trouble.go.
var troubledDesc = prometheus.NewDesc("cloudshare_handler_machines_in_trouble",
	"Machines of a handler that could not start tasks, by no task's fault, and have started none since; they rest between two tries.", []string{"handler"}, nil)

// The figures of the log, if its backend tells them.
var (
	logSyncDesc = prometheus.NewDesc("cloudshare_log_sync_seconds",
		"Median time of recent syncs of the log's entries: this broker's own and, at the leader, each other voter's with its way there and back.", []string{"member"}, nil)
	handOverDesc = prometheus.NewDesc("cloudshare_handovers_total",
		"Times that this broker, as the leader, handed over by itself: unfit (not registered), slow_disk, far (another voter is much nearer to a majority), or turn (it had led for an hour).", []string{"reason"}, nil)
	heldDesc = prometheus.NewDesc("cloudshare_quota_wait_seconds_total",
		"Time in which a member's commands waited at this broker, as the leader, because they were more than its quota.", []string{"member"}, nil)
)

// newRegistry has every metric of a broker; METRICS.md lists them.
func newRegistry(b *broker.Broker, handlers []executor.Handler, kept *outputs.Store, r *records) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newBrokerCollector(b), siteCollector{b, handlers}, outputsCollector{kept.Stats, b.HomeLogs, time.Now})
	for _, f := range r.figures() {
		reg.MustRegister(f)
	}
	return reg
}

func newBrokerCollector(b *broker.Broker) *brokerCollector {
	c := &brokerCollector{broker: b}
	for _, f := range brokerFigures {
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, nil, nil))
	}
	for _, f := range estimateFigures {
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, nil, nil))
	}
	return c
}

var _ prometheus.Collector = (*brokerCollector)(nil)

// Describe implements prometheus.Collector.
func (c *brokerCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
	for _, f := range tallyFigures {
		out <- f.desc
	}
	out <- troubledDesc
	out <- logSyncDesc
	out <- handOverDesc
	out <- heldDesc
	for _, d := range fileDescs {
		out <- d
	}
	for _, d := range noticeDescs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *brokerCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	m := c.broker.Metrics(ctx)
	for i, f := range brokerFigures {
		out <- prometheus.MustNewConstMetric(c.descs[i], f.kind, f.value(m))
	}
	for _, f := range tallyFigures {
		for _, n := range f.value(m) {
			out <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(n.Count), n.Handler, n.Kind)
		}
	}
	for handler, n := range m.Troubled {
		out <- prometheus.MustNewConstMetric(troubledDesc, prometheus.GaugeValue, float64(n), handler)
	}
	for member, took := range m.Log.Syncs {
		out <- prometheus.MustNewConstMetric(logSyncDesc, prometheus.GaugeValue, took.Seconds(), member)
	}
	for why, n := range m.Log.HandOvers {
		out <- prometheus.MustNewConstMetric(handOverDesc, prometheus.CounterValue, float64(n), why)
	}
	for member, d := range m.Log.Held {
		out <- prometheus.MustNewConstMetric(heldDesc, prometheus.CounterValue, d.Seconds(), member)
	}
	collectFiles(&m.Files, out)
	collectNotices(&m.Notices, out)
	estimates := c.broker.Calibration()
	for i, f := range estimateFigures {
		d := c.descs[len(brokerFigures)+i]
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(f.value(estimates)))
	}
}
