package tes

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// roots are those of the tests.
var roots = exports.Roots{
	"alice": {{Name: "/data/alice", Folder: "/data/alice"}, {Name: "/scratch", Folder: "/scratch"}},
	"bob":   {{Name: "/scratch", Folder: "/scratch"}},
	"*":     {{Name: "/shared", Folder: "/shared", ReadOnly: true}},
}

// specOf makes a job of a task whose inputs are contents, URLs, or files of which nobody looks whether they are there.
func specOf(body, user string) (*plan, jobspec.Spec, error) {
	task, err := parse([]byte(body))
	if err != nil {
		return nil, jobspec.Spec{}, err
	}
	p, err := translate(task, user, roots)
	if err != nil {
		return nil, jobspec.Spec{}, err
	}
	var inputs []map[string]any
	for i, from := range p.inputs {
		in := map[string]any{"path": p.task.Inputs[i].Path}
		switch {
		case from.URL != "":
			in["url"] = from.URL
		default:
			in["content"] = from.Content
		}
		inputs = append(inputs, in)
	}
	spec, err := p.spec(inputs)
	return p, spec, err
}

// task returns a task with more fields.
func task(more string) string {
	return `{"executors":[{"image":"alpine","command":["true"]}]` + more + `}`
}

// TestRefusals: what is wrong is said in one line that names the field.
func TestRefusals(t *testing.T) {
	executor := func(more string) string {
		return `{"executors":[{"image":"alpine","command":["true"]` + more + `}]}`
	}
	input := func(fields string) string { return task(`,"inputs":[{` + fields + `}]`) }
	output := func(fields string) string { return task(`,"outputs":[{` + fields + `}]`) }
	resources := func(fields string) string { return task(`,"resources":{` + fields + `}`) }
	for _, c := range []struct{ body, field, word string }{
		{``, "body", "too early"},
		{`{`, "body", "too early"},
		{`[]`, "body", "must be a JSON object"},
		{`7`, "body", "must be a JSON object"},
		{task("") + `{}`, "body", "after the task"},
		{"{\"name\":\"\xff\"}", "body", "UTF-8"},
		{`{"name":3}`, "name", "must be a string"},
		{`{}`, "executors", "is missing"},
		{`{"executors":{}}`, "executors", "must be a list"},
		{`{"executors":[7]}`, "executors", "must be an object"},
		{`{"executors":[{"command":["a"]}]}`, "executors.0.image", "is missing"},
		{`{"executors":[{"image":"a"}]}`, "executors.0.command", "is missing"},
		{`{"executors":[{"image":"a","command":[""]}]}`, "executors.0.command", "is missing"},
		{`{"executors":[{"image":"a","command":"sh -c x"}]}`, "executors.command", "must be a list"},
		{`{"executors":[{"image":"a","command":["\u0000"]}]}`, "executors.0.command.0", "NUL"},
		{`{"executors":[{"image":"A B","command":["a"]}]}`, "image", "name of an image"},
		{`{"executors":[{"image":"a","command":["a"]},{"image":"b","command":["a"]}]}`, "executors.1.image", "one container"},
		{`{"executors":[` + strings.Repeat(`{"image":"a","command":["a"]},`, 64) + `{"image":"a","command":["a"]}]}`, "executors", "at most 64"},
		{executor(`,"workdir":"tmp"`), "executors.0.workdir", "absolute"},
		{executor(`,"stdin":"/a/../b"`), "executors.0.stdin", "climbs"},
		{executor(`,"stdout":"/a\u0007"`), "executors.0.stdout", "control"},
		{executor(`,"stderr":"/` + strings.Repeat("x", 256) + `"`), "executors.0.stderr", "255"},
		{executor(`,"env":{"A=B":"c"}`), "executors.0.env.A=B", "without '='"},
		{executor(`,"env":{"CLOUDSHARE_JOB":"c"}`), "executors.0.env.CLOUDSHARE_JOB", "set by CloudShare"},
		{executor(`,"env":["A"]`), "executors.env", "must be an object"},
		{executor(`,"ignore_error":"yes"`), "executors.ignore_error", "true or false"},
		{input(`"url":"/scratch/a"`), "inputs.0.path", "is missing"},
		{input(`"url":"/scratch/a","path":"a"`), "inputs.0.path", "absolute"},
		{input(`"url":"/scratch/a","path":"/a/../../b"`), "inputs.0.path", "climbs"},
		{input(`"url":"/scratch/a","path":"/"`), "inputs.0.path", "whole container"},
		{input(`"path":"/a"`), "inputs.0.url", "is missing"},
		{input(`"path":"/a","url":"/scratch/a","type":"LINK"`), "inputs.0.type", "FILE or DIRECTORY"},
		{input(`"path":"/a","content":"x","type":"DIRECTORY"`), "inputs.0.content", "FILE"},
		{input(`"path":"/a","url":"/etc/passwd"`), "inputs.0.url", "tes.roots"},
		{input(`"path":"/a","url":"file:///scratch/../etc/passwd"`), "inputs.0.url", "climbs"},
		{input(`"path":"/a","url":"file:///scratch/%2e%2e/etc/passwd"`), "inputs.0.url", "climbs"},
		{input(`"path":"/a","url":"file://host/scratch/a"`), "inputs.0.url", "without host"},
		{input(`"path":"/a","url":"file:///data/alice/a"`), "inputs.0.url", "tes.roots"},
		{input(`"path":"/a","url":"gs://b/k"`), "inputs.0.url", `"gs" is not known`},
		{input(`"path":"/a","url":"ftp://b/k"`), "inputs.0.url", `"ftp" is not known`},
		{input(`"path":"/a","url":"a/b"`), "inputs.0.url", "is not known"},
		{input(`"path":"/a","url":"https://h/d","type":"DIRECTORY"`), "inputs.0.url", "DIRECTORY"},
		{input(`"path":"/a","url":"https://u:p@h/d"`), "inputs.0.url", "no name and password"},
		{task(`,"inputs":[{"path":"/a","content":"x"},{"path":"/a/b","content":"y"}]`), "inputs.1.path", "folder"},
		{output(`"path":"/a"`), "outputs.0.url", "is missing"},
		{output(`"url":"/scratch/a"`), "outputs.0.path", "is missing"},
		{output(`"path":"/a","url":"s3://bucket/k"`), "outputs.0.url", "nothing is written to s3"},
		{output(`"path":"/a","url":"https://h/k"`), "outputs.0.url", "outputs are written by file://"},
		{output(`"path":"/a","url":"/etc/cron.d/x"`), "outputs.0.url", "tes.roots"},
		{output(`"path":"/a","url":"/scratch"`), "outputs.0.url", "name the file"},
		{output(`"path":"/a","url":"/shared/a"`), "outputs.0.url", "for reading only"},
		{output(`"path":"/a/*","url":"/scratch"`), "outputs.0.path_prefix", "is missing"},
		{output(`"path":"/a/*","path_prefix":"/b","url":"/scratch"`), "outputs.0.path_prefix", "begins with"},
		{output(`"path":"/a/[","path_prefix":"/a","url":"/scratch"`), "outputs.0.path", "bracket"},
		{task(`,"volumes":["vol"]`), "volumes.0", "absolute"},
		{task(`,"volumes":"/vol"`), "volumes", "must be a list"},
		{task(`,"volumes":["/v","/"]`), "volumes.1", "whole container"},
		{task(`,"tags":{"a":1}`), "tags", "must be a string"},
		{task(`,"tags":["a"]`), "tags", "must be an object"},
		{resources(`"cpu_cores":1.5`), "resources.cpu_cores", "whole number"},
		{resources(`"cpu_cores":"4"`), "resources.cpu_cores", "whole number"},
		{resources(`"cpu_cores":-1`), "resources.cpu_cores", "negative"},
		{resources(`"cpu_cores":4000000000`), "resources.cpu", "1000000"},
		{resources(`"ram_gb":-0.5`), "resources.ram_gb", "from 0"},
		{resources(`"ram_gb":1e300`), "resources.ram_gb", "from 0"},
		{resources(`"ram_gb":1e999`), "resources.ram_gb", "number"},
		{resources(`"disk_gb":"x"`), "resources.disk_gb", "must be a number"},
		{resources(`"zones":["No Site"]`), "sites.only", "site"},
		{resources(`"zones":["site-1"],"backend_parameters":{"sites":"site-2"}`), "resources.backend_parameters.sites", "zones"},
		{resources(`"backend_parameters":{"Priority":"high"}`), "resources.backend_parameters.Priority", "whole number"},
		{resources(`"backend_parameters":{"timeout":"soon"}`), "timeout", "soon"},
		{resources(`"backend_parameters":{"VmSize":"x"},"backend_parameters_strict":true`), "resources.backend_parameters.VmSize", "known are gpu, priority, sites, timeout"},
	} {
		_, _, err := specOf(c.body, "bob")
		var wrong *badTask
		var spec *jobspec.SpecError
		field := ""
		switch {
		case errors.As(err, &wrong):
			field = wrong.field
		case errors.As(err, &spec):
			field = spec.Field
		default:
			t.Errorf("%.120s: %v", c.body, err)
			continue
		}
		oneLine := !strings.ContainsAny(err.Error(), "\n\r\x00")
		if !strings.HasPrefix(field, c.field) || !strings.Contains(err.Error(), c.word) || !oneLine {
			t.Errorf("%.120s: field %q: %v; want %q and %q", c.body, field, err, c.field, c.word)
		}
	}
}

// TestTooMany of anything is refused.
func TestTooMany(t *testing.T) {
	many := func(n int, one string) string { return "[" + strings.Repeat(one+",", n) + one + "]" }
	tags := make([]string, maxTags+1)
	for i := range tags {
		tags[i] = fmt.Sprintf(`"t%d":""`, i)
	}
	for field, body := range map[string]string{
		"inputs":  task(`,"inputs":` + many(255, `{"path":"/a","content":""}`)),
		"outputs": task(`,"outputs":` + many(maxOutputs, `{"path":"/a","url":"/scratch/a"}`)),
		"volumes": task(`,"volumes":` + many(maxVolumes, `"/a"`)),
		"tags":    task(`,"tags":{` + strings.Join(tags, ",") + `}`),
	} {
		if _, _, err := specOf(body, "bob"); err == nil || !strings.HasPrefix(err.Error(), field+": has ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// FuzzParse: whatever a task is, it is refused in one line, or a job that can be read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		task(""), task(`,"inputs":[{"path":"/a","content":"x"},{"path":"/b","url":"s3://bucket/k"}]`),
		task(`,"outputs":[{"path":"/a/*","path_prefix":"/a","url":"file:///scratch/x"}],"volumes":["/v/"]`),
		task(`,"resources":{"cpu_cores":2,"ram_gb":0.5,"disk_gb":1,"zones":["site-1"],"backend_parameters":{"gpu":"1"}}`),
		`{"executors":[{"image":"a","command":["b"],"stdin":"/x","env":{"A":"b"},"ignore_error":true}],"tags":{"a b":"c"}}`,
		`{"executors":null,"name":null}`, `{"executors":[{"image":"a:b@sha256:x","command":[]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, spec, err := specOf(string(body), "alice")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q", err)
			}
			return
		}
		for _, x := range p.exports {
			if x.Root != "/data/alice" && x.Root != "/scratch" || strings.Contains("/"+x.To+"/", "/../") {
				t.Errorf("%+v leaves its root", x)
			}
		}
		if spec.Image == "" || spec.Count != 1 || len(spec.Command) == 0 {
			t.Errorf("%+v", spec)
		}
		a, err := p.attached()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(documentOf(t, a.Document)); err != nil {
			t.Errorf("what is kept cannot be read again: %v", err)
		}
	})
}
