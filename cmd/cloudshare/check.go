package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
)

// shownKey is one key as it may be shown.
type shownKey struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source,omitempty"`
}

// redacted stands for a secret that is set.
const redacted = "(set, not shown)"

// shown lists a configuration without its secrets.
func (c Config) shown() []shownKey { return shownOf(reflect.ValueOf(c)) }

func shownOf(v reflect.Value) (out []shownKey) {
	for _, f := range fieldsOf("", v) {
		v := f.value
		switch {
		case f.secret && !reflect.ValueOf(v).IsZero():
			v = redacted
		default:
			if d, ok := v.(fmt.Stringer); ok {
				v = d.String()
			}
		}
		out = append(out, shownKey{Key: f.key, Value: v})
	}
	return out
}

// showConfig prints what a broker would run with, and where each value is from.
func (a *app) showConfig(s settings) error {
	keys := s.shown()
	for i := range keys {
		keys[i].Source = s.sources[keys[i].Key]
	}
	var known []string
	for _, f := range configFields() {
		known = append(known, f.variable())
	}
	for _, name := range s.strangers {
		a.note("%s is no key and is ignored; did you mean %s?", name, nearest(name, known))
	}
	return a.show(keys, func(w io.Writer) {
		row(w, "KEY", "VALUE", "SOURCE")
		for _, k := range keys {
			v := k.Value
			if list, ok := v.([]string); ok {
				v = strings.Join(list, ",")
			}
			row(w, k.Key, v, k.Source)
		}
	})
}
