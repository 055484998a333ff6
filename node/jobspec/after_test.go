package jobspec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestAfterIsRead: what a job waits for is sealed, comes back as it was, and means the same in any order.
func TestAfterIsRead(t *testing.T) {
	spec := parsed(t, `{"command":["a"],"after":[{"job":"a.9"},{"when":"any","job":"a.3"},{"job":"#2","when":"notok"}]}`)
	want := []Dependency{
		{Line: 2, When: WhenNotOK},
		{Job: command.JobID{Site: "a", Num: 3}, When: WhenAny},
		{Job: command.JobID{Site: "a", Num: 9}},
	}
	if !reflect.DeepEqual(spec.After, want) {
		t.Errorf("%+v", spec.After)
	}
	other := parsed(t, `{"after":[{"job":"a.3","when":"any"},{"job":"#2","when":"notok"},{"job":"a.9","when":"ok"}],"command":["a"]}`)
	if spec.Meaning() != other.Meaning() {
		t.Error("the order has a meaning")
	}
	back, err := SpecOf(spec.JobSpec("a", 7, 0, plain{}), plain{})
	if err != nil || !reflect.DeepEqual(back, spec) {
		t.Errorf("back: %+v, %v", back, err)
	}
	if empty := parsed(t, `{"command":["a"],"after":[]}`); empty.Meaning() != parsed(t, `{"command":["a"]}`).Meaning() {
		t.Error("an empty list means something")
	}
}

// TestBadAfterIsRefused: each error names the field, and says what is right.
func TestBadAfterIsRefused(t *testing.T) {
	var many []string
	for i := range MaxAfter + 1 {
		many = append(many, fmt.Sprintf(`{"job":"a.%d"}`, i+1))
	}
	for after, want := range map[string]string{
		`"a.3"`:                         `after: must be a list of objects (got "a.3")`,
		`["a.3"]`:                       `after.0: must be an object such as {"job": "site-1.3", "when": "ok"} (got "a.3")`,
		`[{}]`:                          `after.0.job: is missing`,
		`[{"job":"a"}]`:                 `after.0.job: must be a job's id`,
		`[{"job":"#0"}]`:                `after.0.job: must be a job's id`,
		`[{"job":"#01"}]`:               `after.0.job: must be a job's id`,
		`[{"job":"#4294967296"}]`:       `after.0.job: must be a job's id`,
		`[{"job":3}]`:                   `after.0.job: must be a string (got 3)`,
		`[{"job":"a.1","when":""}]`:     `after.0.when: must be "ok", "any", "notok" or "each"`,
		`[{"job":"a.1","when":"Each"}]`: `after.0.when: must be "ok", "any", "notok" or "each" (got "Each")`,
		`[{"job":"a.1","state":"ok"}]`:  `after.0.state: is not a field of a job; known here: job, when`,
		`[{"job":"a.1"},{"job":"a.1","when":"notok"}]`: `after: must name each job once (got "a.1")`,
		`[` + strings.Join(many, ",") + `]`:            `after: names more than 64 jobs`,
	} {
		_, err := ParseSpec([]byte(`{"command":["a"],"after":` + after + `}`))
		bad, ok := errors.AsType[*SpecError](err)
		if !ok || bad.Malformed || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: %v, want %s…", after, err, want)
		}
	}
}
