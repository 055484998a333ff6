// Package config has the keys of a broker's configuration. It loads them from the
// file, the environment and the flags, checks them before anything starts, and says
// what a data directory holds. It must not import what runs a broker.
package config

import (
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Config of a broker. Defaults < file < environment (CLOUDSHARE_NAME) < flags;
// a key's flag has "-" for "_" and ".", its variable "_" for ".". CONFIG.md is
// generated from the tags. A key with the tag secret:"true" is never shown.
type Config struct {
	Site       string   `koanf:"site" doc:"this site's name: lower-case letters, digits and '-'"`
	DataDir    string   `koanf:"data_dir" doc:"folder of everything the broker must not forget"`
	HTTP       string   `koanf:"http" doc:"host:port of the API"`
	Peer       string   `koanf:"peer" doc:"host:port for other brokers"`
	Gossip     string   `koanf:"gossip" doc:"host:port (TCP and UDP) for gossip; port 0 takes a free one"`
	GossipJoin []string `koanf:"gossip_join" doc:"gossip addresses of other sites, besides those that the state knows: for brokers that change all their addresses at once"`
	Bootstrap  bool     `koanf:"bootstrap" doc:"found a new federation (empty data only)"`
	Join       string   `koanf:"join" doc:"invitation to join by: its text, @FILE that holds it, or - to read it from stdin (empty data, or data whose join is not over)" secret:"true"`
	Deny       []string `koanf:"deny" doc:"sites that this broker does not talk to, whatever the federation has decided"`
	IfEmpty    bool     `koanf:"if_empty" doc:"with data, pass over bootstrap and join instead of refusing: for services whose command line is always the same"`
	Profile    string   `koanf:"profile" doc:"timing: lan or wan"`
	// Coordination and what follows it say where the federation's log is.
	Coordination string        `koanf:"coordination" doc:"where the federation's log is: raft (among the brokers) or zookeeper"`
	ZK           string        `koanf:"zk" doc:"with zookeeper: host:port,… of the ensemble's servers and the path of the federation in it"`
	ZKAuth       string        `koanf:"zk_auth" doc:"with zookeeper: file with one line USER:PASSWORD, the digest credentials that alone may read and write there"`
	ZKSession    time.Duration `koanf:"zk_session" doc:"with zookeeper: a leader that is silent for so long is replaced; 0 = 4s, the ensemble bounds it. Leases last at least three times as long"`
	ZKTLS        bool          `koanf:"zk_tls" doc:"with zookeeper: TLS to its servers"`
	ZKInsecure   bool          `koanf:"zk_insecure" doc:"with zookeeper: plain connections to servers off loopback: on a network you trust, for anybody between reads the password"`
	ZKTLSCA      string        `koanf:"zk_tls_ca" doc:"certificates (PEM) that vouch for the servers; empty = the system's"`
	ZKTLSCert    string        `koanf:"zk_tls_cert" doc:"certificate (PEM) to show to the servers, with zk_tls_key"`
	ZKTLSKey     string        `koanf:"zk_tls_key" doc:"its private key (PEM)"`

	Insecure  bool     `koanf:"insecure" doc:"plain HTTP off loopback, for http without TLS and for kube.watchdog.listen: behind a proxy, or on a network you trust"`
	Advertise string   `koanf:"advertise" doc:"host name or address that other brokers are told, with the ports of http, peer and gossip; empty = where those listen"`
	HTTPNames []string `koanf:"http_names" doc:"host names that clients may ask the API by, besides addresses, localhost and those in http and peer"`

	HTTPTLSCert string `koanf:"http_tls_cert" doc:"certificate (PEM, with its chain) that the API shows to clients, read again when it changes"`
	HTTPTLSKey  string `koanf:"http_tls_key" doc:"its private key (PEM)"`

	HTTPTLSSelfMade bool `koanf:"http_tls_self_made" doc:"instead of files, a certificate that the broker makes; the tokens that it gives name its key"`

	Cores   int    `koanf:"cores" doc:"cores of this machine to use; 0 = all"`
	Reserve int    `koanf:"reserve" doc:"cores never lent to others"`
	Pin     bool   `koanf:"pin" doc:"tie tasks to their cores even where a cgroup or an engine limits their time; bare commands are tied without it where none does"`
	Memory  string `koanf:"memory" doc:"memory to use, such as 8Gi; 0 = all"`

	Labels   []string       `koanf:"labels" doc:"KEY=VALUE that jobs may select this site's machines by, besides site, handler, os and arch"`
	Handlers HandlersConfig `koanf:"handlers"`

	Commands  bool            `koanf:"commands" doc:"run bare commands as processes of this machine; false = jobs with an image only"`
	Sandbox   SandboxConfig   `koanf:"sandbox"`
	Container ContainerConfig `koanf:"container"`
	Kube      KubeConfig      `koanf:"kube"`

	MinFree string `koanf:"min_free" doc:"take no new jobs while data_dir's file system has less free; 0 = always take them"`

	Lease     time.Duration `koanf:"lease" doc:"with --bootstrap: how long tasks for others run without word from the leader; 0 = the profile's"`
	Margin    time.Duration `koanf:"margin" doc:"with --bootstrap: how much longer the leader waits for a silent site; 0 = the profile's"`
	KillGrace time.Duration `koanf:"kill_grace" doc:"between TERM and KILL of a task; 0 = the profile's"`

	StopTasks bool          `koanf:"stop_tasks" doc:"end this machine's tasks when the broker is told to stop"`
	StopWait  time.Duration `koanf:"stop_wait" doc:"how long a stop may take"`
	LogLevel  string        `koanf:"log_level" doc:"debug, info, warn or error"`
	LogFormat string        `koanf:"log_format" doc:"console or json"`

	TaskLogs TaskLogsConfig `koanf:"task_logs"`
	Archive  ArchiveConfig  `koanf:"archive"`
	History  HistoryConfig  `koanf:"history"`
	Data     DataConfig     `koanf:"data"`
	Notify   NotifyConfig   `koanf:"notify"`
	TES      TESConfig      `koanf:"tes"`

	OIDC OIDCConfig `koanf:"oidc"`

	Rates  RatesConfig `koanf:"rates"`
	Quotas []string    `koanf:"quotas" doc:"limits of this site's users: in the file a map such as {\"*\": {tasks: 1000}, alice: {tasks: 5000, cores: 50}}, else USER:QUOTA=N:…,… Quotas are tasks, cores, bytes and jobs_per_minute; what cloudshare quota set says outweighs them"`

	UserHalfLife time.Duration `koanf:"user_half_life" doc:"after how long half of what a user's tasks have run is forgotten, when users take turns; from 1h to 8760h"`

	PProf string `koanf:"pprof" doc:"loopback host:port for profiles; empty = off. What it shows is for the operator only"`

	file string // from which it was read, empty = none
}

// TaskLogsConfig bounds what stays of attempts that have ended: their output,
// oldest deleted first. Their working directories go when they end.
type TaskLogsConfig struct {
	Keep     time.Duration `koanf:"keep" doc:"how long the output of an ended attempt is kept, from its end, or from when it came here from another site"`
	MaxBytes string        `koanf:"max_bytes" doc:"of the kept output of all ended attempts, here and of own tasks at other sites, such as 10Gi; each counts as 1Ki at least, and all together never take more than half of the disk"`
	Each     string        `koanf:"each" doc:"of stdout, and of stderr, of one attempt, such as 64Mi; the rest is dropped"`
}

// ArchiveConfig says what is remembered of attempts for reports and exports.
type ArchiveConfig struct {
	Scope    string        `koanf:"scope" doc:"own (this site is owner or executor), all or off"`
	Keep     time.Duration `koanf:"keep" doc:"how long an attempt stays in the archive, at least 1h"`
	MaxBytes string        `koanf:"max_bytes" doc:"of the archive on disk, at least 16Mi; the oldest goes first"`
}

// HistoryConfig says how much is kept of the log, for `cloudshare audit verify`.
type HistoryConfig struct {
	MaxBytes string `koanf:"max_bytes" doc:"of the log's entries and what members have signed of them, kept for cloudshare audit, at least 16Mi; the oldest goes first, 0 = nothing is kept"`
}

// Default returns a broker on loopback that uses the whole machine.
func Default() Config {
	return Config{
		DataDir: "data", HTTP: "127.0.0.1:7700", Peer: "127.0.0.1:7701", Gossip: "127.0.0.1:7702", GossipJoin: []string{}, Deny: []string{}, HTTPNames: []string{}, Profile: "lan",
		Coordination: Raft,
		Commands:     true, Sandbox: defaultSandbox(), Container: defaultContainer(), Kube: defaultKube(),
		Labels: []string{}, Handlers: defaultHandlers(),
		Memory: "0", MinFree: "256Mi", StopWait: 15 * time.Second, LogLevel: "info", LogFormat: "console",
		TaskLogs: TaskLogsConfig{Keep: 24 * time.Hour, MaxBytes: "10Gi", Each: "64Mi"},
		Archive:  ArchiveConfig{Scope: "own", Keep: 400 * 24 * time.Hour, MaxBytes: "256Mi"},
		History:  HistoryConfig{MaxBytes: "256Mi"},
		Data:     defaultData(),
		Notify:   defaultNotify(),
		TES:      defaultTES(),
		OIDC:     defaultOIDC(),
		Rates:    defaultRates(),
		Quotas:   []string{}, UserHalfLife: node.UserHalfLife,
	}
}

// Validate returns the first thing that is wrong, with its remedy; it touches
// nothing outside.
func (c Config) Validate() error {
	switch {
	case c.Site == "":
		return cli.Usage("site is missing: name it with --site")
	case !command.ValidSite(c.Site):
		return cli.Usage("site %q: must be lower-case letters, digits and '-', at most 63", c.Site)
	case c.DataDir == "":
		return cli.Usage("data_dir is empty: name a folder with --data-dir")
	case c.Bootstrap && c.Join != "":
		return cli.Usage("--bootstrap and --join: a broker either founds a federation or joins one")
	case c.Profile != "lan" && !c.IsWAN():
		return cli.Usage("profile %q: must be lan or wan", c.Profile)
	case c.Cores < 0 || c.Reserve < 0:
		return cli.Usage("cores %d, reserve %d: must not be negative", c.Cores, c.Reserve)
	case int64(c.Cores)*1000 > command.MaxMilliCPU:
		return cli.Usage("cores %d: a site has at most %d", c.Cores, command.MaxMilliCPU/1000)
	case c.Cores > 0 && c.Reserve > c.Cores:
		return cli.Usage("reserve %d: must be at most cores (%d)", c.Reserve, c.Cores)
	case c.Lease < 0 || c.Margin < 0 || c.KillGrace < 0 || c.StopWait <= 0:
		return cli.Usage("lease %s, margin %s, kill_grace %s must not be negative, stop_wait %s must be positive", c.Lease, c.Margin, c.KillGrace, c.StopWait)
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel):
		return cli.Usage("log_level %q: must be debug, info, warn or error", c.LogLevel)
	case c.LogFormat != "console" && c.LogFormat != "json":
		return cli.Usage("log_format %q: must be console or json", c.LogFormat)
	}
	if _, err := parseMemory(c.Memory); err != nil {
		return err
	}
	if _, err := jobspec.ParseMemory(c.MinFree); err != nil {
		return cli.Usage("min_free %q: %w; 0 for no limit", c.MinFree, err)
	}
	if err := c.checkKept(); err != nil {
		return err
	}
	if err := c.checkData(); err != nil {
		return err
	}
	if err := c.checkNotify(); err != nil {
		return err
	}
	if _, err := c.TESRoots(); err != nil {
		return err
	}
	if err := c.checkTerms(); err != nil {
		return err
	}
	if err := c.checkContainer(); err != nil {
		return err
	}
	if err := c.checkKube(); err != nil {
		return err
	}
	if err := c.CheckCoordination(); err != nil {
		return err
	}
	if err := c.checkAddresses(); err != nil {
		return err
	}
	if err := c.checkOIDC(); err != nil {
		return err
	}
	if err := c.checkSandbox(); err != nil {
		return err
	}
	if err := c.checkRates(); err != nil {
		return err
	}
	if err := c.checkUsers(); err != nil {
		return err
	}
	if err := c.Timing().Validate(); err != nil {
		return cli.Usage("%w", err)
	}
	return nil
}

// checkKept checks what is kept of attempts.
func (c Config) checkKept() error {
	for _, q := range [...]struct{ key, text string }{
		{"task_logs.max_bytes", c.TaskLogs.MaxBytes}, {"task_logs.each", c.TaskLogs.Each}, {"archive.max_bytes", c.Archive.MaxBytes},
	} {
		switch mib, err := jobspec.ParseMemory(q.text); {
		case err != nil:
			return cli.Usage("%s %q: %w", q.key, q.text, err)
		case mib == 0 || mib > maxKeptMiB:
			return cli.Usage("%s %q: must be more than 0 and at most 1024Ti", q.key, q.text)
		}
	}
	if c.TaskLogs.Keep < time.Second {
		return cli.Usage("task_logs.keep %s: must be at least 1s", c.TaskLogs.Keep)
	}
	switch mib, err := jobspec.ParseMemory(c.History.MaxBytes); {
	case err != nil:
		return cli.Usage("history.max_bytes %q: %w; 0 for nothing", c.History.MaxBytes, err)
	case mib != 0 && mib < minHistoryMiB || mib > maxKeptMiB:
		return cli.Usage("history.max_bytes %q: must be 0, or from 16Mi to 1024Ti", c.History.MaxBytes)
	}
	kept := c.ForArchive("")
	if err := kept.Validate(); err != nil {
		return cli.Usage("%w", err)
	}
	return nil
}

// maxKeptMiB is a pebibyte; with less than minHistoryMiB a state of some size leaves no room for entries.
const (
	maxKeptMiB    = 1 << 30
	minHistoryMiB = 16
)

// sizeOf reads a quantity that Validate has seen.
func sizeOf(text string) int64 {
	mib, _ := jobspec.ParseMemory(text)
	return min(mib, maxKeptMiB) << 20
}

// ForArchive returns what the archive of a federation is told.
func (c Config) ForArchive(federation string) archive.Config {
	return archive.Config{
		Dir: filepath.Join(c.DataDir, "archive"), Site: c.Site, Federation: federation,
		Scope: archive.Scope(c.Archive.Scope), Keep: c.Archive.Keep, MaxBytes: sizeOf(c.Archive.MaxBytes),
		Now: time.Now,
	}
}

// HistoryBytes bounds what is kept of the log, 0 = nothing is.
func (c Config) HistoryBytes() int64 { return sizeOf(c.History.MaxBytes) }

// Retention returns what is kept of the output of ended attempts.
func (c Config) Retention() attempts.Retention {
	return attempts.Retention{Age: c.TaskLogs.Keep, Bytes: sizeOf(c.TaskLogs.MaxBytes)}
}

// OutputBytes bounds each of stdout and stderr of an attempt.
func (c Config) OutputBytes() int64 { return sizeOf(c.TaskLogs.Each) }

// IsWAN reports whether members are far apart, by the profile.
func (c Config) IsWAN() bool { return c.Profile == "wan" }

// Timing returns what the profile gives, unless a key says otherwise. Lease and
// margin count when the federation is founded; later its own do.
func (c Config) Timing() node.Timing {
	t := node.Timing{Lease: 6 * time.Second, Margin: time.Second, Grace: time.Second}
	if c.IsWAN() {
		t = node.Timing{Lease: 30 * time.Second, Margin: 3 * time.Second, Grace: 5 * time.Second}
	}
	if c.Coordination == ZooKeeper {
		// A dead leader's session must expire, and the next one begin, before leases do.
		t.Lease = max(t.Lease, 3*c.zkSession())
	}
	for _, o := range []struct{ to, from *time.Duration }{
		{&t.Lease, &c.Lease},
		{&t.Margin, &c.Margin},
		{&t.Grace, &c.KillGrace},
	} {
		if *o.from != 0 {
			*o.to = *o.from
		}
	}
	return t
}

// MemoryMiB is Memory in MiB, 0 = all.
func (c Config) MemoryMiB() int64 {
	mib, _ := parseMemory(c.Memory) // Validate has seen it
	return mib
}

// Disk returns what the broker watches.
func (c Config) Disk() node.Disk {
	mib, _ := jobspec.ParseMemory(c.MinFree) // Validate has seen it
	return node.Disk{Path: c.DataDir, MinFree: min(mib, 1<<40) << 20}
}

// Advertised returns what others are told of a listener, empty for its own address.
func (c Config) Advertised(listener string) string {
	_, port, err := net.SplitHostPort(listener)
	if c.Advertise == "" || err != nil {
		return ""
	}
	return net.JoinHostPort(c.Advertise, port)
}

// CheckFounding refuses a start that would found a second federation over old
// data, or that knows none.
func (c Config) CheckFounding() error {
	has, err := LatestState(c.DataDir)
	on := has.Backend
	old := on != "" && (!has.pending || c.Bootstrap)
	switch founding := c.Bootstrap || c.Join != ""; {
	case err != nil:
		return err
	case old && founding && !c.IfEmpty:
		return cli.Usage("data in %s belong to a federation already: start without --bootstrap and --join, or name an empty --data-dir", c.DataDir)
	case on == ZooKeeper && c.Coordination == Raft:
		return cli.Usage("data in %s are on zookeeper, not on raft: start with --coordination zookeeper, or, if the federation has moved, "+
			"follow it first: cloudshare recover --follow, or import its state here: cloudshare state import", c.DataDir)
	case on == "" && !founding:
		return cli.Usage("no data in %s yet: found a federation with --bootstrap, or join one by an invitation, --join TOKEN", c.DataDir)
	}
	return nil
}

// Settled is c as it counts for the data that are there.
func (c Config) Settled() (Config, error) {
	has, err := LatestState(c.DataDir)
	if err != nil || has.Backend == "" {
		return c, err
	}
	c.Bootstrap = false // not IfEmpty: refused before
	if !has.pending {
		c.Join = ""
	}
	return c, nil
}

// HasData reports whether dir belongs to a member of a federation.
func HasData(dir string) (bool, error) {
	on, err := DataBackend(dir)
	return on != "", err
}

// parseMemory reads a quantity as jobs write it.
func parseMemory(text string) (int64, error) {
	mib, err := jobspec.ParseMemory(text)
	if err != nil {
		return 0, cli.Usage("memory %q: %w; 0 for all", text, err)
	}
	return mib, nil
}
