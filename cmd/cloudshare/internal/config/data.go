package config

import (
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// DataConfig says how far files travel with tasks, and what of them is kept.
type DataConfig struct {
	Own      string `koanf:"own" doc:"of inputs and results of this site's jobs, such as 100Gi; when it is full, jobs with new files are refused, and results wait at the sites that have them, or in work folders here; 0 = no files travel with tasks here, and the other keys do not count"`
	Cache    string `koanf:"cache" doc:"of inputs of other sites' tasks that run here; those used least recently go, also when the disk has less than min_free"`
	Outgoing string `koanf:"outgoing" doc:"of results of other sites' tasks, until their sites have fetched them; a task begins only if what it may leave fits beside that of others"`
	LendMax  string `koanf:"lend_max" doc:"files and outputs of one task of another site together; 0 = none with files runs here"`

	DeliverWait time.Duration `koanf:"deliver_wait" doc:"how long results of this site's tasks are waited for while the site that ran them is away; then they are lost, and the tasks run again; at least 1m"`
	Hold        time.Duration `koanf:"hold" doc:"how long results of other sites' tasks are kept that nobody fetches, and how long those of own tasks wait for room; at least 1h"`
	KeepResults time.Duration `koanf:"keep_results" doc:"how long results of this site's jobs are kept after the end of their job; at least 1m"`
	KeepUnnamed time.Duration `koanf:"keep_unnamed" doc:"how long files stay that no job names yet, or any more, since they were sent or asked for last: uploads, inputs of jobs that have ended, results that are kept no longer; at least 1m"`

	FetchFrom    []string `koanf:"fetch_from" doc:"hosts from which this broker fetches inputs that jobs name by URL (https): HOST, HOST:PORT or *.DOMAIN; buckets and folders of them (s3, see data.s3): s3://BUCKET or s3://BUCKET/PREFIX; none = no URL is fetched"`
	FetchPrivate bool     `koanf:"fetch_private" doc:"those hosts, and data.s3.endpoint, may have addresses that only this machine or its network reaches"`

	S3 S3Config `koanf:"s3"`

	Uplink string `koanf:"uplink" doc:"bytes a second that all other sites together get, such as 10Mi; 0 = no bound"`
}

const (
	// minHold is less than which no site that was away for a moment gets its results.
	minHold = time.Hour
	// minKeep is less than which nobody would get his own results, or name what he has just sent.
	minKeep = time.Minute
)

func defaultData() DataConfig {
	return DataConfig{
		Own: "100Gi", Cache: "20Gi", Outgoing: "20Gi", LendMax: "16Gi",
		DeliverWait: time.Hour, Hold: 7 * 24 * time.Hour, KeepResults: 30 * 24 * time.Hour, KeepUnnamed: 24 * time.Hour,
		Uplink: "0",
		S3:     S3Config{PathStyle: true},
	}
}

// checkData checks what is said of files.
func (c Config) checkData() error {
	for _, q := range [...]struct{ key, text string }{
		{"own", c.Data.Own},
		{"cache", c.Data.Cache},
		{"outgoing", c.Data.Outgoing},
		{"lend_max", c.Data.LendMax},
		{"uplink", c.Data.Uplink},
	} {
		switch mib, err := jobspec.ParseMemory(q.text); {
		case err != nil:
			return cli.Usage("data.%s %q: %w", q.key, q.text, err)
		case mib > maxKeptMiB:
			return cli.Usage("data.%s %q: must be at most 1024Ti", q.key, q.text)
		}
	}
	switch {
	case c.Data.DeliverWait < time.Minute:
		return cli.Usage("data.deliver_wait %s: must be at least 1m", c.Data.DeliverWait)
	case c.Data.Hold < minHold:
		return cli.Usage("data.hold %s: must be at least %s", c.Data.Hold, minHold)
	case c.Data.KeepResults < minKeep:
		return cli.Usage("data.keep_results %s: must be at least %s", c.Data.KeepResults, minKeep)
	case c.Data.KeepUnnamed < minKeep:
		return cli.Usage("data.keep_unnamed %s: must be at least %s", c.Data.KeepUnnamed, minKeep)
	}
	return c.checkFetch()
}

// ForFiles returns what the store of files is told; false: no files travel with tasks here.
func (c Config) ForFiles() (o store.Options, some bool) {
	o = store.Options{
		Dir: filepath.Join(c.DataDir, "data"), Now: time.Now,
		Limits: store.Limits{
			Own:      store.Limit{Max: sizeOf(c.Data.Own), Keep: c.Data.KeepUnnamed},
			Cache:    store.Limit{Max: sizeOf(c.Data.Cache)},
			Outgoing: store.Limit{Max: sizeOf(c.Data.Outgoing), Keep: c.Data.Hold},
		},
	}
	return o, o.Limits.Own.Max > 0
}

// DataTerms returns how far files travel with tasks.
func (c Config) DataTerms() node.DataTerms {
	return node.DataTerms{
		LendMax:     min(sizeOf(c.Data.LendMax), sizeOf(c.Data.Cache)),
		DeliverWait: c.Data.DeliverWait, Hold: c.Data.Hold, KeepResults: c.Data.KeepResults,
	}
}

// Uplink returns how many bytes a second other sites get, 0 = no bound.
func (c Config) Uplink() int64 { return sizeOf(c.Data.Uplink) }
