package config

import (
	"fmt"
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

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// EnvPrefix begins the names of the keys in the environment.
const EnvPrefix = "CLOUDSHARE_"

// Field is one key of Config.
type Field struct {
	// Key is its name in the file.
	Key string

	doc    string
	secret bool
	value  any // the default
}

// flag returns the key's name as a flag.
func (f Field) flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(f.Key) }

// Variable returns the key's name in the environment.
func (f Field) Variable() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.Key, ".", "_"))
}

// Fields lists the keys with their defaults in the order of the struct.
func Fields() []Field { return fieldsOf("", reflect.ValueOf(Default())) }

// fieldsOf lists the keys of a struct with its values; nested ones have a prefix.
func fieldsOf(prefix string, v reflect.Value) (out []Field) {
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		tag, value := v.Type().Field(i).Tag, v.Field(i)
		key := prefix + tag.Get("koanf")
		if value.Kind() == reflect.Struct {
			out = append(out, fieldsOf(key+".", value)...)
			continue
		}
		out = append(out, Field{key, tag.Get("doc"), tag.Get("secret") != "", value.Interface()})
	}
	return out
}

// AddFlags defines a flag for every key.
func AddFlags(f *pflag.FlagSet) {
	for _, c := range Fields() {
		name := c.flag()
		switch v := c.value.(type) {
		case bool:
			f.Bool(name, v, c.doc)
		case int:
			f.Int(name, v, c.doc)
		case time.Duration:
			to := new(time.Duration)
			cli.DurationVar(f, to, name, v, c.doc)
		case []string:
			f.StringSlice(name, v, c.doc)
		default:
			f.String(name, fmt.Sprint(v), c.doc)
		}
	}
}

// Settings are a configuration and where each key's value comes from.
type Settings struct {
	Config
	// Sources has default, file, environment or flag for each key.
	Sources map[string]string
	// Strangers are variables with our prefix that are no key.
	Strangers []string
}

// Load merges the sources and validates. Every error is exit 2.
func Load(path string, flags *pflag.FlagSet, environ func() []string) (Config, error) {
	s, err := LoadSettings(path, flags, environ)
	return s.Config, err
}

// LoadSettings does what Load does, and says where each value comes from.
func LoadSettings(path string, flags *pflag.FlagSet, environ func() []string) (Settings, error) {
	l := loader{k: koanf.New("."), s: Settings{Sources: map[string]string{}}}
	if err := l.k.Load(structs.Provider(Default(), "koanf"), nil); err != nil {
		return l.s, cli.Usage("configuration: %w", err)
	}
	l.known = l.k.Keys()
	for _, key := range l.known {
		l.s.Sources[key] = "default"
	}
	if err := l.load(path, flags, environ); err != nil {
		return l.s, err
	}
	if err := l.parseDurations(); err != nil {
		return l.s, err
	}
	if err := l.k.Unmarshal("", &l.s.Config); err != nil {
		return l.s, cli.Usage("configuration: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	splitLists(reflect.ValueOf(&l.s.Config).Elem())
	l.s.file = path
	if err := l.s.checkCommandLine(); err != nil {
		return l.s, err
	}
	return l.s, l.s.Config.Validate()
}

// parseDurations reads the texts that say how long, as those of commands.
func (l *loader) parseDurations() error {
	for _, f := range Fields() {
		text, isText := l.k.Get(f.Key).(string)
		if _, long := f.value.(time.Duration); !long || !isText {
			continue
		}
		d, err := jobspec.ParseDuration(text)
		if err == nil {
			err = l.k.Set(f.Key, d)
		}
		if err != nil {
			return cli.Usage("configuration: %s: %.80q %w", f.Key, text, err)
		}
	}
	return nil
}

// splitLists splits the texts of each list at commas: one may hold several, as in
// the environment.
func splitLists(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Field(i)
		if !field.CanSet() {
			continue // not exported
		}
		if list, ok := field.Addr().Interface().(*[]string); ok && len(*list) > 0 {
			*list = strings.Split(strings.Join(*list, ","), ",")
		}
		if field.Kind() == reflect.Struct {
			splitLists(field)
		}
	}
}

// loader merges sources.
type loader struct {
	k     *koanf.Koanf
	known []string
	s     Settings
}

func (l *loader) load(path string, flags *pflag.FlagSet, environ func() []string) error {
	if path != "" {
		if err := l.loadFile(path); err != nil {
			return err
		}
	}
	if err := l.k.Load(l.environment(environ), nil); err != nil {
		return cli.Usage("environment: %w", err)
	}
	keys := map[string]string{}
	for _, f := range Fields() {
		keys[f.flag()] = f.Key
	}
	fromFlags := posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		key, ok := keys[f.Name]
		if !f.Changed || !ok {
			return "", nil
		}
		l.s.Sources[key] = "flag"
		return key, posflag.FlagVal(flags, f)
	})
	if err := l.k.Load(fromFlags, nil); err != nil {
		return cli.Usage("flags: %w", err)
	}
	return nil
}

// environment takes the keys of a broker only: CLOUDSHARE_ADDR is the client's,
// and a broker may itself run inside a task.
func (l *loader) environment(environ func() []string) koanf.Provider {
	keys := map[string]string{}
	for _, f := range Fields() {
		keys[f.Variable()] = f.Key
	}
	return env.Provider(".", env.Opt{
		Prefix: EnvPrefix, EnvironFunc: environ,
		TransformFunc: func(name, value string) (string, any) {
			key, ok := keys[name]
			switch {
			case !ok:
				if !slices.Contains(otherVariables, name) {
					l.s.Strangers = append(l.s.Strangers, name)
				}
				return "", nil
			case key == "site" && insideTask(environ):
				return "", nil
			}
			l.s.Sources[key] = "environment"
			return key, value
		},
	})
}

// otherVariables with our prefix are no keys: the client's and a task's own.
var otherVariables = []string{
	"CLOUDSHARE_ADDR", "CLOUDSHARE_CONTEXT", "CLOUDSHARE_API_TOKEN", "CLOUDSHARE_API_TOKEN_FILE", "CLOUDSHARE_CA_FILE",
	"CLOUDSHARE_PLAIN", "CLOUDSHARE_JOB", "CLOUDSHARE_TASK", "CLOUDSHARE_ATTEMPT", "CLOUDSHARE_TOKEN", "CLOUDSHARE_OWNER",
	"CLOUDSHARE_WORKDIR",
}

// insideTask: a task's CLOUDSHARE_SITE names its executor, not a broker's site.
func insideTask(environ func() []string) bool {
	return slices.ContainsFunc(environ(), func(s string) bool { return strings.HasPrefix(s, "CLOUDSHARE_TOKEN=") })
}

func (l *loader) loadFile(path string) error {
	f := koanf.New(".")
	if err := f.Load(file.Provider(path), yaml.Parser()); err != nil {
		return cli.Usage("configuration %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	if in, named := f.Raw()[quotasKey]; named {
		lines, err := quotaLines(in)
		if err != nil {
			return cli.Usage("configuration %s: %w", path, err)
		}
		f.Delete(quotasKey)
		if err = f.Set(quotasKey, lines); err != nil {
			return cli.Usage("configuration %s: %w", path, err)
		}
	}
	for _, key := range f.Keys() {
		if !slices.Contains(l.known, key) {
			return cli.Usage("configuration %s: unknown key %q; did you mean %q?", path, key, Nearest(key, l.known))
		}
		l.s.Sources[key] = "file " + path
	}
	if err := l.k.Merge(f); err != nil {
		return cli.Usage("configuration %s: %w", path, err)
	}
	return nil
}

// Nearest returns the known key with the smallest edit distance.
func Nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return fsm.EditDistance(key, a) - fsm.EditDistance(key, b) })
}
