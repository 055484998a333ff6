package jobspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

const fullSpec = `{"name":"render","command":["sh","-c","echo \"hi\" é\n"],"image":"img:1","env":{"A":"1","B":"x=y"},` +
	`"count":3,"timeout":"1h","resources":{"cpu":2,"memory":"256Mi","gpu":1},` +
	`"retry":{"max_attempts":4,"on_loss":"never"},"priority":-7,"labels":{"team":"a","k/x":""},` +
	`"sites":{"only":["site-2","site-1","site-2"],"not":["site-9"]},` +
	`"selectors":["zone in (b, a)","gpu","!old","gpu"],"network":true}`

func TestParseSpecDefaults(t *testing.T) {
	want := DefaultSpec()
	want.Command = []string{"true"}
	for _, text := range []string{
		`{"command":["true"]}`,
		` { "command" : [ "true" ] } ` + "\n",
		`{"command":["true"],"image":null,"timeout":null,"env":{},"labels":null,"resources":null,` +
			`"sites":{"only":[],"not":null}}`,
	} {
		got, err := ParseSpec([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got.Sites.Only = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v\nwant %+v", text, got, want)
		}
	}
}

func TestParseSpecFull(t *testing.T) {
	got, err := ParseSpec([]byte(fullSpec))
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Name: "render", Command: []string{"sh", "-c", "echo \"hi\" é\n"}, Image: "img:1",
		Env: map[string]string{"A": "1", "B": "x=y"}, Count: 3, Timeout: time.Hour,
		Resources: SpecResources{CPU: 2, Memory: 256, GPU: 1},
		Retry:     SpecRetry{MaxAttempts: 4, OnLoss: command.Never}, Priority: -7,
		Labels:    map[string]string{"team": "a", "k/x": ""},
		Sites:     SpecSites{Only: []string{"site-1", "site-2"}, Not: []string{"site-9"}},
		Selectors: []string{"!old", "gpu", "zone in (a,b)"}, Network: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// TestParseSpecRefuses covers what users get wrong: which field the error names, and whether the text
// is not a JSON document (400) or not a valid job (422).
func TestParseSpecRefuses(t *testing.T) {
	cases := []struct {
		text      string
		field     string
		malformed bool
	}{
		{``, "body", true},
		{`  `, "body", true},
		{`{`, "body", true},
		{`{"command":["a"]} {}`, "body", true},
		{`{"command":["a"]}x`, "body", true},
		{`{"command":["a"],}`, "body", true},
		{`{"command":["a" "b"]}`, "body", true},
		{`{"command":["a\x01"]}`, "body", true},
		{`{"command":["a\q"]}`, "body", true},
		{`{"command":["a\ud800"]}`, "body", true},
		{"{\"command\":[\"a\nb\"]}", "body", true},
		{"{\"command\":[\"\xff\"]}", "body", true},
		{"{\"command\":[\"a\"]}\x00", "body", true},
		{`{"command":["a"],"count":NaN}`, "body", true},
		{`{"command":["a"],"count":01}`, "body", true},
		{`{"command":["a"],"count":1.}`, "body", true},
		{`{"command":["a"],"count":+1}`, "body", true},
		{`{"command":["a"],"count":` + strings.Repeat("[", 100) + `}`, "body", true},
		{`{"command":["a"],"command":["b"]}`, "command", true},
		{`{"command":["a"],"env":{"A":"1","A":"2"}}`, "env.A", true},
		{`{"command":["a"],"resources":{"cpu":1,"cpu":2}}`, "resources.cpu", true},
		{`[]`, "body", false},
		{`"job"`, "body", false},
		{`null`, "body", false},
		{`{}`, "command", false},
		{`{"command":[]}`, "command", false},
		{`{"command":null}`, "command", false},
		{`{"command":[""]}`, "command.0", false},
		{`{"command":"ls"}`, "command", false},
		{`{"command":["a",1]}`, "command", false},
		{`{"command":["a",null]}`, "command", false},
		{`{"command":["a\u0000"]}`, "command.0", false},
		{`{"Command":["a"]}`, "Command", false},
		{`{"command":["a"],"nodes":3}`, "nodes", false},
		{`{"command":["a"],"resources":{"cores":3}}`, "resources.cores", false},
		{`{"command":["a"],"name":7}`, "name", false},
		{`{"command":["a"],"name":"a\nb"}`, "name", false},
		{`{"command":["a"],"name":"a\u202eb"}`, "name", false},
		{"{\"command\":[\"a\"],\"name\":\"a\u2066b\"}", "name", false},
		{`{"command":["a"],"image":"a\u200bb"}`, "image", false},
		{`{"image":"Alpine"}`, "image", false},
		{`{"command":["a"],"image":"alpine:"}`, "image", false},
		{`{"image":"http://x/y"}`, "image", false},
		{`{"image":"alpine@sha256:12"}`, "image", false},
		{`{"command":["a"],"labels":{"k":"a\u2028b"}}`, "labels.k", false},
		{`{"command":["a"],"name":"` + strings.Repeat("x", 256) + `"}`, "name", false},
		{`{"command":["a"],"count":0}`, "count", false},
		{`{"command":["a"],"count":-1}`, "count", false},
		{`{"command":["a"],"count":1000001}`, "count", false},
		{`{"command":["a"],"count":99999999999999999999999}`, "count", false},
		{`{"command":["a"],"count":1e999}`, "count", false},
		{`{"command":["a"],"count":1.5}`, "count", false},
		{`{"command":["a"],"count":"1"}`, "count", false},
		{`{"command":["a"],"count":true}`, "count", false},
		{`{"command":["a"],"resources":{"cpu":0}}`, "resources.cpu", false},
		{`{"command":["a"],"resources":{"cpu":0.5}}`, "resources.cpu", false},
		{`{"command":["a"],"resources":{"cpu":9223372036854775807}}`, "resources.cpu", false},
		{`{"command":["a"],"resources":{"gpu":-1}}`, "resources.gpu", false},
		{`{"command":["a"],"resources":7}`, "resources", false},
		{`{"command":["a"],"resources":{"memory":256}}`, "resources.memory", false},
		{`{"command":["a"],"resources":{"memory":"256Qi"}}`, "resources.memory", false},
		{`{"command":["a"],"resources":{"memory":"-1Mi"}}`, "resources.memory", false},
		{`{"command":["a"],"resources":{"memory":"1.5.5Gi"}}`, "resources.memory", false},
		{`{"command":["a"],"resources":{"memory":"18446744073709551615Ti"}}`, "resources.memory", false},
		{`{"command":["a"],"timeout":90}`, "timeout", false},
		{`{"command":["a"],"timeout":"-1s"}`, "timeout", false},
		{`{"command":["a"],"timeout":"soon"}`, "timeout", false},
		{`{"command":["a"],"timeout":"2562047h47m16.854775807s"}`, "timeout", false},
		{`{"command":["a"],"retry":{"max_attempts":0}}`, "retry.max_attempts", false},
		{`{"command":["a"],"retry":{"on_loss":"maybe"}}`, "retry.on_loss", false},
		{`{"command":["a"],"priority":9999999999}`, "priority", false},
		{`{"command":["a"],"env":{"":"1"}}`, "env.", false},
		{`{"command":["a"],"env":{"A=B":"1"}}`, "env.A=B", false},
		{`{"command":["a"],"env":{"A":"\u0000"}}`, "env.A", false},
		{`{"command":["a"],"env":{"A":1}}`, "env.A", false},
		{`{"command":["a"],"env":{"CLOUDSHARE_TOKEN":"1"}}`, "env.CLOUDSHARE_TOKEN", false},
		{`{"command":["a"],"labels":{"a b":"1"}}`, "labels.a b", false},
		{`{"command":["a"],"sites":{"only":["Bad Site"]}}`, "sites.only", false},
		{`{"command":["a"],"sites":{"only":["a"],"not":["a"]}}`, "sites", false},
		{`{"command":["a"],"selectors":["gpu","-"]}`, "selectors.1", false},
		{`{"command":["a"],"selectors":["gpu=ü"]}`, "selectors.0", false},
		{`{"command":["a"],"selectors":["` + strings.Repeat("g", 600) + `"]}`, "selectors.0", false},
		{`{"command":["a"],"selectors":"gpu"}`, "selectors", false},
		{`{"command":["a"],"selectors":[1]}`, "selectors", false},
		{`{"command":["a"],"selectors":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]}`, "selectors", false},
		{`{"command":["a"],"network":"outbound"}`, "network", false},
		{`{"command":["a"],"network":truex}`, "body", true},
		{`{"command":["a"],"selectors":["cloudshare/network=all.host"]}`, "selectors", false},
		{`{"command":["a"],"network":true,"selectors":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p"]}`, "selectors", false},
		{`{"command":["` + strings.Repeat("x", 1<<20) + `"]}`, "body", false},
	}
	for _, c := range cases {
		_, err := ParseSpec([]byte(c.text))
		var bad *SpecError
		if !errors.As(err, &bad) {
			t.Errorf("%.80s: error %v, want a *SpecError", c.text, err)
			continue
		}
		if bad.Field != c.field || bad.Malformed != c.malformed {
			t.Errorf("%.80s: field %q malformed %v (%v), want %q %v",
				c.text, bad.Field, bad.Malformed, err, c.field, c.malformed)
		}
		if msg := err.Error(); strings.ContainsAny(msg, "\n\x00") || len(msg) > 400 {
			t.Errorf("%.80s: the message is not one short line: %q", c.text, msg)
		}
	}
}

// Found by a user: YAML reads bare words such as 3 and true as other than strings.
func TestParseSpecSaysToQuote(t *testing.T) {
	for text, want := range map[string]string{
		`{"command":["sleep",3]}`:   `command: must be a list of strings: quote this one, as "3" (got 3)`,
		`{"command":[true]}`:        `command: must be a list of strings: quote this one, as "true" (got true)`,
		`{"command":["x",["y"]]}`:   `command: must be a list of strings (got ["y"])`,
		`{"command":["x",{"y":1}]}`: `command: must be a list of strings (got {"y":1})`,
	} {
		if _, err := ParseSpec([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestSpecMemoryRoundsUp(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1Ki": 1, "256Mi": 256, "2Gi": 2048, "1M": 1, "1G": 954, "1Ti": 1 << 20,
	} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("ParseMemory(%q) = %d %v, want %d", text, got, err, want)
		}
	}
}

// plain seals nothing.
type plain struct{}

func (plain) Seal(public, text []byte) []byte {
	return bytes.Join([][]byte{public, text}, []byte{1})
}

func (plain) Open(payload []byte) (public, text []byte, err error) {
	public, text, _ = bytes.Cut(payload, []byte{1})
	return public, text, nil
}

// Who may not read the sealed text learns nothing of command, environment and name.
func TestSpecForEverybody(t *testing.T) {
	spec, err := ParseSpec([]byte(fullSpec))
	if err != nil {
		t.Fatal(err)
	}
	js := spec.JobSpec("a", 42, 1000, plain{})
	js.Payload, _, _ = bytes.Cut(js.Payload, []byte{1})
	back, err := SpecOf(js, plain{})
	if err != nil || back.Name != "" || back.Command != nil || back.Env != nil {
		t.Errorf("everybody reads %+v, %v", back, err)
	}
	if back.Image != spec.Image || !reflect.DeepEqual(back.Labels, spec.Labels) || back.Count != spec.Count {
		t.Errorf("everybody reads only %+v", back)
	}
}

func TestSpecOverTheWire(t *testing.T) {
	spec, err := ParseSpec([]byte(fullSpec))
	if err != nil {
		t.Fatal(err)
	}
	js := spec.JobSpec("a", 42, 1000, plain{})
	if js.Num != 42 || js.CreatedMs != 1000 || js.Need.MilliCPU != 2000 || js.TimeoutMs != 3600_000 {
		t.Errorf("JobSpec = %+v", js)
	}
	const payload = `{"labels":{"k/x":"","team":"a"},"image":"img:1","network":true}` + "\x01" +
		`{"name":"render","command":["sh","-c","echo \"hi\" é\u000a"],"env":{"A":"1","B":"x=y"}}`
	if string(js.Payload) != payload {
		t.Errorf("payload\n got %s\nwant %s", js.Payload, payload)
	}
	back, err := SpecOf(js, plain{})
	if err != nil || !reflect.DeepEqual(back, spec) {
		t.Errorf("SpecOf = %+v, %v\nwant %+v", back, err, spec)
	}
	for _, mixed := range []string{
		`{"command":["a"]}` + "\x01{}", "{}\x01" + `{"command":["a"],"image":"x"}`, "{}\x01" + `{"count":3}`, "{}\x01[]",
	} {
		js.Payload = []byte(mixed)
		if back, err := SpecOf(js, plain{}); err == nil {
			t.Errorf("%q is read as %+v", mixed, back)
		}
	}
	js.Payload = []byte(`{"name"`)
	if _, err := SpecOf(js, plain{}); err == nil {
		t.Error("SpecOf accepted a broken payload")
	}
}

func TestMatchLabels(t *testing.T) {
	spec := DefaultSpec()
	bare := spec.JobSpec("a", 1, 0, plain{}).Payload
	spec.Labels = map[string]string{"a": "1", "b": `x"y`}
	payload := spec.JobSpec("a", 1, 0, plain{}).Payload
	for _, c := range []struct {
		payload []byte
		want    map[string]string
		match   bool
	}{
		{payload, nil, true},
		{payload, map[string]string{"a": "1"}, true},
		{payload, map[string]string{"a": "1", "b": `x"y`}, true},
		{payload, map[string]string{"a": "2"}, false},
		{payload, map[string]string{"c": ""}, false},
		{bare, nil, true},
		{bare, map[string]string{"a": "1"}, false},
		{[]byte(`{"labels":{"a":`), map[string]string{"a": "1"}, false},
		{nil, map[string]string{"a": "1"}, false},
	} {
		if got := MatchLabels(c.payload, c.want); got != c.match {
			t.Errorf("MatchLabels(%s, %v) = %v", c.payload, c.want, got)
		}
	}
}

// FuzzParseSpec checks that ParseSpec never panics, and that an accepted text is JSON for the standard
// library too, survives the form of the state, and is within bounds.
func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{
		fullSpec, `{"image":"[::1]:5/a_b:t@sha256:0"}`, `{"command":["a"]}`,
		filesSpec, `{"image":"i","inputs":[{"path":"/a","content":"\u0001"},{"path":"/b","each":"` + oneHash + `"}],"indices":"3"}`,
		`{"command":["a"],"outputs":{"optional":["a/[b-d]*","./"],"max":"0.001k"}}`,
		`{"command":["\ud83d\ude00"],"timeout":"1us"}`, `{"command":["a"],"network":true,"selectors":["z"]}`, `[1,{"a":null}]`, `{"a`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := ParseSpec(data)
		if err != nil {
			var bad *SpecError
			if !errors.As(err, &bad) || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Fatalf("error %q is no one-line *SpecError", err)
			}
			if bad.Malformed && json.Valid(data) && !stricter(bad) {
				t.Fatalf("called malformed, but is JSON: %v", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted what is not JSON: %q", data)
		}
		js := spec.JobSpec("a", 7, 1, plain{})
		if err := js.Validate(); err != nil {
			t.Fatalf("the state refuses an accepted job: %v", err)
		}
		back, err := SpecOf(js, plain{})
		if err != nil || back.Meaning() != spec.Meaning() {
			t.Fatalf("from the state: %+v, %v; want %+v", back, err, spec)
		}
		if !MatchLabels(js.Payload, spec.Labels) {
			t.Fatalf("own labels %v are not found in %s", spec.Labels, js.Payload)
		}
	})
}

// stricter reports whether the standard library accepts what was refused: it keeps the last of two
// equal fields, repairs bad UTF-8 and half surrogate pairs, and bounds the depth less strictly.
func stricter(e *SpecError) bool {
	for _, why := range []string{"twice", "UTF-8", "bad escape", "deeply"} {
		if strings.Contains(e.Reason, why) {
			return true
		}
	}
	return false
}

func BenchmarkParseSpec(b *testing.B) {
	for name, text := range map[string]string{
		"small": `{"command":["/bin/sh","-c","sleep 1"],"name":"bench","resources":{"cpu":1}}`, "full": fullSpec,
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := ParseSpec(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMeaningOfSpecs checks that documents of equal meaning are the same job under an idempotency key,
// whatever they look like, and that each field makes a difference.
func TestMeaningOfSpecs(t *testing.T) {
	meaning := func(text string) [32]byte {
		spec, err := ParseSpec([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return spec.Meaning()
	}
	plain := meaning(`{"command":["a"],"env":{"A":"1","B":"2"}}`)
	for _, same := range []string{
		"\n{ \"env\": {\"B\":\"2\", \"A\":\"\\u0031\"},\t\"command\": [\"a\"] } ",
		`{"command":["a"],"env":{"A":"1","B":"2"},"count":1,"priority":0,"resources":{"cpu":1,"memory":"0"},` +
			`"retry":{"on_loss":"fenced"}}`,
	} {
		if meaning(same) != plain {
			t.Errorf("%s means something else", same)
		}
	}
	seen := map[[32]byte]string{plain: "plain"}
	for _, other := range []string{
		`"name":"n"`, `"image":"i"`, `"env":{"A":"12"}`, `"env":{"A":"1","B":""}`, `"count":2`, `"timeout":"1s"`,
		`"resources":{"cpu":2}`, `"resources":{"memory":"1Gi"}`, `"resources":{"gpu":1}`,
		`"retry":{"max_attempts":2}`, `"retry":{"on_loss":"never"}`, `"priority":1`, `"labels":{"a":"b"}`,
		`"sites":{"only":["a"]}`, `"sites":{"not":["a"]}`, `"selectors":["gpu"]`, `"network":true`,
	} {
		m := meaning(`{"command":["a"],` + other + `}`)
		if before, twice := seen[m]; twice {
			t.Errorf("%s means the same as %s", other, before)
		}
		seen[m] = other
	}
}
