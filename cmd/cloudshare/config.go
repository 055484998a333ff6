package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// Config of a broker. Defaults < file < environment (CLOUDSHARE_NAME) < flags;
// a key's flag has "-" for "_".
type Config struct {
	Site      string   `koanf:"site" doc:"this site's name: lower-case letters, digits and '-'"`
	DataDir   string   `koanf:"data_dir" doc:"folder of everything the broker must not forget"`
	HTTP      string   `koanf:"http" doc:"host:port of the API"`
	Peer      string   `koanf:"peer" doc:"host:port for other brokers"`
	Gossip    string   `koanf:"gossip" doc:"host:port (TCP and UDP) for gossip; port 0 takes a free one"`
	Bootstrap bool     `koanf:"bootstrap" doc:"found a new federation (empty data only)"`
	Join      []string `koanf:"join" doc:"peer addresses of members to join through (empty data only)"`
	Profile   string   `koanf:"profile" doc:"timing: lan or wan"`
	Insecure  bool     `koanf:"insecure" doc:"let listeners without transport security leave the loopback"`

	Cores   int    `koanf:"cores" doc:"cores of this machine to use; 0 = all"`
	Reserve int    `koanf:"reserve" doc:"cores never lent to others"`
	Pin     bool   `koanf:"pin" doc:"tie tasks to their cores"`
	Memory  string `koanf:"memory" doc:"memory to use, such as 8Gi; 0 = all"`

	MinFree string `koanf:"min_free" doc:"take no new jobs while data_dir's file system has less free; 0 = always take them"`

	Lease     time.Duration `koanf:"lease" doc:"with --bootstrap: how long tasks for others run without word from the lead; 0 = the profile's"`
	Margin    time.Duration `koanf:"margin" doc:"with --bootstrap: how much longer the lead waits for a silent site; 0 = the profile's"`
	KillGrace time.Duration `koanf:"kill_grace" doc:"between TERM and KILL of a task; 0 = the profile's"`

	StopTasks bool          `koanf:"stop_tasks" doc:"end this machine's tasks when the broker is told to stop"`
	StopWait  time.Duration `koanf:"stop_wait" doc:"how long a stop may take"`
	LogLevel  string        `koanf:"log_level" doc:"debug, info, warn or error"`
	LogFormat string        `koanf:"log_format" doc:"console or json"`
}

// DefaultConfig is a broker on loopback that uses the whole machine.
func DefaultConfig() Config {
	return Config{
		DataDir: "data", HTTP: "127.0.0.1:7700", Peer: "127.0.0.1:7701", Gossip: "127.0.0.1:7702", Join: []string{}, Profile: "lan",
		Memory: "0", MinFree: "256Mi", StopWait: 15 * time.Second, LogLevel: "info", LogFormat: "console",
	}
}

// envPrefix of the keys in the environment.
const envPrefix = "CLOUDSHARE_"

// configField is one key of Config.
type configField struct {
	key, doc string
	value    any // the default
}

// configFields lists the keys in the order of the struct.
func configFields() []configField {
	v := reflect.ValueOf(DefaultConfig())
	out := make([]configField, v.NumField())
	for i := range out {
		tag := v.Type().Field(i).Tag
		out[i] = configField{tag.Get("koanf"), tag.Get("doc"), v.Field(i).Interface()}
	}
	return out
}

// configFlags defines a flag for every key.
func configFlags(f *pflag.FlagSet) {
	for _, c := range configFields() {
		name := strings.ReplaceAll(c.key, "_", "-")
		switch v := c.value.(type) {
		case bool:
			f.Bool(name, v, c.doc)
		case int:
			f.Int(name, v, c.doc)
		case time.Duration:
			f.Duration(name, v, c.doc)
		case []string:
			f.StringSlice(name, v, c.doc)
		default:
			f.String(name, fmt.Sprint(v), c.doc)
		}
	}
}

// loadConfig merges the sources and validates. Every error is exit 2.
func loadConfig(path string, flags *pflag.FlagSet, environ func() []string) (Config, error) {
	k := koanf.New(".")
	if err := k.Load(structs.Provider(DefaultConfig(), "koanf"), nil); err != nil {
		return Config{}, usage("configuration: %w", err)
	}
	known := k.Keys()
	if path != "" {
		if err := loadFile(k, path, known); err != nil {
			return Config{}, err
		}
	}
	// Only keys of a broker count: CLOUDSHARE_ADDR is the client's, and a
	// broker may itself run inside a task.
	fromEnv := env.Provider(".", env.Opt{Prefix: envPrefix, EnvironFunc: environ, TransformFunc: func(name, value string) (string, any) {
		key := strings.ToLower(strings.TrimPrefix(name, envPrefix))
		if !slices.Contains(known, key) || key == "site" && insideTask(environ) {
			return "", nil
		}
		return key, value
	}})
	if err := k.Load(fromEnv, nil); err != nil {
		return Config{}, usage("environment: %w", err)
	}
	fromFlags := posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		key := strings.ReplaceAll(f.Name, "-", "_")
		if !f.Changed || !slices.Contains(known, key) {
			return "", nil
		}
		return key, posflag.FlagVal(flags, f)
	})
	if err := k.Load(fromFlags, nil); err != nil {
		return Config{}, usage("flags: %w", err)
	}
	var cfg Config
	if err := k.Unmarshal("", &cfg); err != nil {
		return Config{}, usage("configuration: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(cfg.Join) > 0 { // one text may hold several, as in the environment
		cfg.Join = strings.Split(strings.Join(cfg.Join, ","), ",")
	}
	return cfg, cfg.Validate()
}

// insideTask: a task's CLOUDSHARE_SITE names its executor, not a broker's site.
func insideTask(environ func() []string) bool {
	return slices.ContainsFunc(environ(), func(s string) bool { return strings.HasPrefix(s, "CLOUDSHARE_TOKEN=") })
}

func loadFile(k *koanf.Koanf, path string, known []string) error {
	f := koanf.New(".")
	if err := f.Load(file.Provider(path), yaml.Parser()); err != nil {
		return usage("configuration %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, key := range f.Keys() {
		if !slices.Contains(known, key) {
			return usage("configuration %s: unknown key %q; did you mean %q?", path, key, nearest(key, known))
		}
	}
	if err := k.Merge(f); err != nil {
		return usage("configuration %s: %w", path, err)
	}
	return nil
}

// Validate returns the first thing that is wrong, with its remedy; it touches
// nothing outside.
func (c Config) Validate() error {
	switch {
	case c.Site == "":
		return usage("site is missing: name it with --site")
	case !fsm.ValidSite(c.Site):
		return usage("site %q: must be lower-case letters, digits and '-', at most 63", c.Site)
	case c.DataDir == "":
		return usage("data_dir is empty: name a folder with --data-dir")
	case c.Bootstrap && len(c.Join) > 0:
		return usage("--bootstrap and --join: a broker either founds a federation or joins one")
	case c.Profile != "lan" && c.Profile != "wan":
		return usage("profile %q: must be lan or wan", c.Profile)
	case c.Cores < 0 || c.Reserve < 0:
		return usage("cores %d, reserve %d: must not be negative", c.Cores, c.Reserve)
	case int64(c.Cores)*1000 > fsm.MaxMilliCPU:
		return usage("cores %d: a site has at most %d", c.Cores, fsm.MaxMilliCPU/1000)
	case c.Cores > 0 && c.Reserve > c.Cores:
		return usage("reserve %d: must be at most cores (%d)", c.Reserve, c.Cores)
	case c.Lease < 0 || c.Margin < 0 || c.KillGrace < 0 || c.StopWait <= 0:
		return usage("lease %s, margin %s, kill_grace %s must not be negative, stop_wait %s must be positive", c.Lease, c.Margin, c.KillGrace, c.StopWait)
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel):
		return usage("log_level %q: must be debug, info, warn or error", c.LogLevel)
	case c.LogFormat != "console" && c.LogFormat != "json":
		return usage("log_format %q: must be console or json", c.LogFormat)
	case c.HTTP == c.Peer && !strings.HasSuffix(c.HTTP, ":0"):
		return usage("http and peer are both %s: they need two ports", c.HTTP)
	}
	if _, err := parseMemory(c.Memory); err != nil {
		return err
	}
	if _, ok := node.ParseMemory(c.MinFree); !ok {
		return usage("min_free %q: must be a quantity such as 256Mi, or 0 for no limit", c.MinFree)
	}
	for _, addr := range c.Join {
		if err := checkAddr("join", addr); err != nil {
			return err
		}
	}
	if err := c.timing().Validate(); err != nil {
		return usage("%w", err)
	}
	return errors.Join(c.checkListener("http", c.HTTP), c.checkListener("peer", c.Peer), c.checkListener("gossip", c.Gossip))
}

// timing is what the profile gives, unless a key says otherwise. Lease and
// margin count when the federation is founded; later its own do.
func (c Config) timing() node.Timing {
	t := node.Timing{Lease: 6 * time.Second, Margin: time.Second, Grace: time.Second}
	if c.Profile == "wan" {
		t = node.Timing{Lease: 30 * time.Second, Margin: 3 * time.Second, Grace: 5 * time.Second}
	}
	for _, o := range []struct{ to, from *time.Duration }{{&t.Lease, &c.Lease}, {&t.Margin, &c.Margin}, {&t.Grace, &c.KillGrace}} {
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

// disk is what the broker watches.
func (c Config) disk() node.Disk {
	mib, _ := node.ParseMemory(c.MinFree) // Validate has seen it
	return node.Disk{Path: c.DataDir, MinFree: min(mib, 1<<40) << 20}
}

// checkListener keeps brokers off the network unless told otherwise: there is
// no transport security yet.
func (c Config) checkListener(key, addr string) error {
	if err := checkAddr(key, addr); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || c.Insecure {
		return nil
	}
	return usage("%s %s is not on loopback, and there is no transport security yet: use 127.0.0.1, or --insecure on a network you trust", key, addr)
}

func checkAddr(key, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return usage("%s %q: must be host:port", key, addr)
	}
	return nil
}

// checkFounding refuses a start that would found a second federation over old
// data, or that knows none.
func (c Config) checkFounding() error {
	old, err := hasData(c.DataDir)
	switch founding := c.Bootstrap || len(c.Join) > 0; {
	case err != nil:
		return fmt.Errorf("look into data_dir: %w", err)
	case old && founding:
		return usage("data in %s belong to a federation already: start without --bootstrap and --join, or name an empty --data-dir", c.DataDir)
	case !old && !founding:
		return usage("no data in %s yet: found a federation with --bootstrap, or join one with --join HOST:PORT", c.DataDir)
	}
	return nil
}

// hasData reports whether dir belongs to a member of a federation: a join that
// was refused leaves nothing that would stand in the way of the next one.
func hasData(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, raftDir, "member.json"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// nearest returns the known key with the smallest edit distance.
func nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return distance(key, a) - distance(key, b) })
}

// distance is Levenshtein's.
func distance(a, b string) int {
	line := make([]int, len(b)+1)
	for j := range line {
		line[j] = j
	}
	for i := range len(a) {
		diagonal := line[0]
		line[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = line[j+1]
			line[j+1] = min(change, line[j]+1, line[j+1]+1)
		}
	}
	return line[len(b)]
}
