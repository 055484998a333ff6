package jobspec

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

// TestChange: what is named is set, and what is wrong changes nothing.
func TestChange(t *testing.T) {
	spec, err := ParseSpec([]byte(`{"command":["x"],"indices":"3,5","labels":{"a":"b"},"resources":{"cpu":2,"memory":"1Gi"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := spec
	for text, field := range map[string]string{
		`{"resources":{"memory":"much"}}`:           "resources.memory",
		`{"resources":{"memory":"8Gi","cpu":0}}`:    "resources.cpu",
		`{"timeout":"1h","resources":{"disk":"1"}}`: "resources.disk",
		`{"timeout":"soon"}`:                        "timeout",
		`{"timeout":"1h"`:                           "body",
	} {
		var bad *SpecError
		if err = spec.Change([]byte(text)); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
	if !reflect.DeepEqual(spec, want) {
		t.Errorf("refused, and yet %+v", spec)
	}
	if err = spec.Change([]byte(`{"resources":{"memory":"8Gi"},"timeout":"2h"}`)); err != nil {
		t.Fatal(err)
	}
	want.Resources.Memory, want.Timeout = 8<<10, 2*time.Hour
	if !reflect.DeepEqual(spec, want) {
		t.Errorf("%+v, want %+v", spec, want)
	}
}
