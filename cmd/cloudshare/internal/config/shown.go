package config

import (
	"fmt"
	"reflect"
)

// ShownKey is one key as it may be shown.
type ShownKey struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source,omitempty"`
}

// redacted stands for a secret that is set.
const redacted = "(set, not shown)"

// Shown lists a configuration without its secrets.
func (c Config) Shown() []ShownKey { return shownOf(reflect.ValueOf(c)) }

func shownOf(v reflect.Value) (out []ShownKey) {
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
		out = append(out, ShownKey{Key: f.Key, Value: v})
	}
	return out
}
