package main

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

	"github.com/cloudshare/cloudshare/fsm"
)

// envPrefix of the keys in the environment.
const envPrefix = "CLOUDSHARE_"

// configField is one key of Config.
type configField struct {
	key, doc string
	secret   bool
	value    any // the default
}

// flag and variable are the key's other names.
func (f configField) flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(f.key) }

func (f configField) variable() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.key, ".", "_"))
}

// configFields lists the keys with their defaults in the order of the struct.
func configFields() []configField { return fieldsOf("", reflect.ValueOf(DefaultConfig())) }

// fieldsOf lists the keys of a struct with its values; nested ones have a prefix.
func fieldsOf(prefix string, v reflect.Value) (out []configField) {
	for i := range v.NumField() {
		tag, value := v.Type().Field(i).Tag, v.Field(i)
		key := prefix + tag.Get("koanf")
		if value.Kind() == reflect.Struct {
			out = append(out, fieldsOf(key+".", value)...)
			continue
		}
		out = append(out, configField{key, tag.Get("doc"), tag.Get("secret") != "", value.Interface()})
	}
	return out
}

// configFlags defines a flag for every key.
func configFlags(f *pflag.FlagSet) {
	for _, c := range configFields() {
		name := c.flag()
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

// settings are a configuration and where each key's value comes from.
type settings struct {
	Config
	sources map[string]string // key → default, file, environment or flag
	// strangers are variables with our prefix that are no key.
	strangers []string
}

// loadConfig merges the sources and validates. Every error is exit 2.
func loadConfig(path string, flags *pflag.FlagSet, environ func() []string) (Config, error) {
	s, err := loadSettings(path, flags, environ)
	return s.Config, err
}

// loadSettings is loadConfig with the sources.
func loadSettings(path string, flags *pflag.FlagSet, environ func() []string) (settings, error) {
	l := loader{k: koanf.New("."), s: settings{sources: map[string]string{}}}
	if err := l.k.Load(structs.Provider(DefaultConfig(), "koanf"), nil); err != nil {
		return l.s, usage("configuration: %w", err)
	}
	l.known = l.k.Keys()
	for _, key := range l.known {
		l.s.sources[key] = "default"
	}
	if err := l.load(path, flags, environ); err != nil {
		return l.s, err
	}
	if err := l.k.Unmarshal("", &l.s.Config); err != nil {
		return l.s, usage("configuration: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	splitLists(reflect.ValueOf(&l.s.Config).Elem())
	return l.s, l.s.Config.Validate()
}

// splitLists splits the texts of each list at commas: one may hold several, as in
// the environment.
func splitLists(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Field(i)
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
	s     settings
}

func (l *loader) load(path string, flags *pflag.FlagSet, environ func() []string) error {
	if path != "" {
		if err := l.loadFile(path); err != nil {
			return err
		}
	}
	if err := l.k.Load(l.environment(environ), nil); err != nil {
		return usage("environment: %w", err)
	}
	keys := map[string]string{}
	for _, f := range configFields() {
		keys[f.flag()] = f.key
	}
	fromFlags := posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		key, ok := keys[f.Name]
		if !f.Changed || !ok {
			return "", nil
		}
		l.s.sources[key] = "flag"
		return key, posflag.FlagVal(flags, f)
	})
	if err := l.k.Load(fromFlags, nil); err != nil {
		return usage("flags: %w", err)
	}
	return nil
}

// environment takes the keys of a broker only: CLOUDSHARE_ADDR is the client's,
// and a broker may itself run inside a task.
func (l *loader) environment(environ func() []string) koanf.Provider {
	keys := map[string]string{}
	for _, f := range configFields() {
		keys[f.variable()] = f.key
	}
	return env.Provider(".", env.Opt{Prefix: envPrefix, EnvironFunc: environ, TransformFunc: func(name, value string) (string, any) {
		key, ok := keys[name]
		switch {
		case !ok:
			if !slices.Contains(otherVariables, name) {
				l.s.strangers = append(l.s.strangers, name)
			}
			return "", nil
		case key == "site" && insideTask(environ):
			return "", nil
		}
		l.s.sources[key] = "environment"
		return key, value
	}})
}

// otherVariables with our prefix are no keys: the client's and a task's own.
var otherVariables = []string{
	"CLOUDSHARE_ADDR", "CLOUDSHARE_JOB", "CLOUDSHARE_TASK", "CLOUDSHARE_ATTEMPT", "CLOUDSHARE_TOKEN", "CLOUDSHARE_OWNER", "CLOUDSHARE_WORKDIR",
}

// insideTask: a task's CLOUDSHARE_SITE names its executor, not a broker's site.
func insideTask(environ func() []string) bool {
	return slices.ContainsFunc(environ(), func(s string) bool { return strings.HasPrefix(s, "CLOUDSHARE_TOKEN=") })
}

func (l *loader) loadFile(path string) error {
	f := koanf.New(".")
	if err := f.Load(file.Provider(path), yaml.Parser()); err != nil {
		return usage("configuration %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, key := range f.Keys() {
		if !slices.Contains(l.known, key) {
			return usage("configuration %s: unknown key %q; did you mean %q?", path, key, nearest(key, l.known))
		}
		l.s.sources[key] = "file " + path
	}
	if err := l.k.Merge(f); err != nil {
		return usage("configuration %s: %w", path, err)
	}
	return nil
}

// nearest returns the known key with the smallest edit distance.
func nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return fsm.EditDistance(key, a) - fsm.EditDistance(key, b) })
}
