package jobspec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/files"
)

const (
	oneHash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc"
	twoHash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
)

// filesSpec has an input of each kind, as canonical text has them.
const filesSpec = `{"command":["./run.sh"],"count":2,"inputs":[` +
	`{"path":"ref.fa","sha256":"` + oneHash + `","size":3,"executable":true},` +
	`{"path":"cfg","manifest":"` + twoHash + `","size":90},` +
	`{"path":"in.txt","each":"` + twoHash + `"},` +
	`{"path":"x","url":"https://a.example/x?y=1","sha256":"` + oneHash + `"},` +
	`{"path":"y","url":"https://a.example/y"},` +
	`{"path":"o","url":"s3://data/a b?c#%zz/ü"},` +
	`{"path":"run.sh","content":"#!/bin/sh","executable":true}],` +
	`"outputs":{"paths":["model/","out/*.csv"],"optional":["log"],"max":"1536Mi","when":"success"}}`

func hashOf(t *testing.T, text string) files.Hash {
	t.Helper()
	h, err := files.ParseHash(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func parsed(t *testing.T, text string) Spec {
	t.Helper()
	spec, err := ParseSpec([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return spec
}

func TestParseFiles(t *testing.T) {
	got := parsed(t, filesSpec)
	one, two := hashOf(t, oneHash), hashOf(t, twoHash)
	want := []Input{
		{Path: "ref.fa", Blob: files.Blob{Hash: one, Size: 3}, Executable: true},
		{Path: "cfg", From: FromDirectory, Blob: files.Blob{Hash: two, Size: 90}},
		{Path: "in.txt", From: FromEach, Blob: files.Blob{Hash: two, Size: UnknownSize}},
		{Path: "x", From: FromURL, URL: "https://a.example/x?y=1", Blob: files.Blob{Hash: one, Size: UnknownSize}},
		{Path: "y", From: FromURL, URL: "https://a.example/y", Blob: files.Blob{Size: UnknownSize}},
		{Path: "o", From: FromURL, URL: "s3://data/a b?c#%zz/ü", Blob: files.Blob{Size: UnknownSize}},
		{Path: "run.sh", From: FromContent, Content: []byte("#!/bin/sh"), Blob: files.Blob{Size: 9}, Executable: true},
	}
	if !reflect.DeepEqual(got.Inputs, want) {
		t.Errorf("inputs\n got %+v\nwant %+v", got.Inputs, want)
	}
	o := Outputs{[]string{"model/", "out/*.csv"}, []string{"log"}, 1536 << 20, executor.WhenSuccess}
	if !reflect.DeepEqual(got.Outputs, o) {
		t.Errorf("outputs %+v", got.Outputs)
	}
	got = parsed(t, `{"command":["a"],"inputs":[],"outputs":{"paths":["b","a","b"],"optional":[],"max":null}}`)
	o = Outputs{Paths: []string{"a", "b"}, MaxBytes: DefaultOutputBytes}
	if !reflect.DeepEqual(got.Outputs, o) || got.Inputs != nil {
		t.Errorf("%+v", got)
	}
	for _, none := range []string{`null`, `{}`, `{"paths":[],"optional":null}`} {
		got = parsed(t, `{"command":["a"],"inputs":null,"outputs":`+none+`}`)
		if got.HasFiles() || !reflect.DeepEqual(got.Outputs, Outputs{}) {
			t.Errorf("%s: %+v", none, got)
		}
	}
	got = parsed(t, `{"image":"i","inputs":[{"path":"/data/a","content":""},{"path":"/data/b/c","manifest":"`+oneHash+`"}]}`)
	if got.Inputs[0].Path != "/data/a" || got.Inputs[0].Content == nil {
		t.Errorf("%+v", got.Inputs)
	}
}

// TestParseFilesRefuses: what users get wrong about files, and the field that the error names.
func TestParseFilesRefuses(t *testing.T) {
	for key, want := range map[string]string{
		"fiel": "known here: sha256, manifest, each, url, content, path, size, executable; and file in what",
		"file": "cloudshare submit --file sends it",
	} {
		_, err := ParseSpec([]byte(`{"command":["a"],"inputs":[{"path":"a","` + key + `":"b"}]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	const sum = `"sha256":"` + oneHash + `"`
	many := strings.Repeat(`,{"path":"x","content":""}`, files.MaxInputs+1)[1:]
	for _, c := range [][2]string{
		{`"inputs":{}`, "inputs"},
		{`"inputs":["a"]`, "inputs.0"},
		{`"inputs":[null]`, "inputs.0"},
		{`"inputs":[{}]`, "inputs.0"},
		{`"inputs":[{"path":"a"}]`, "inputs.0"},
		{`"inputs":[{` + sum + `}]`, "inputs.0.path"},
		{`"inputs":[{"path":"a","file":"a"}]`, "inputs.0.file"},
		{`"inputs":[{"path":"a",` + sum + `,"content":""}]`, "inputs.0"},
		{`"inputs":[{"path":"a",` + sum + `,"each":"` + twoHash + `"}]`, "inputs.0"},
		{`"inputs":[{"path":"a","sha256":"abc"}]`, "inputs.0.sha256"},
		{`"inputs":[{"path":"a","sha256":"` + strings.ToUpper(oneHash) + `"}]`, "inputs.0.sha256"},
		{`"inputs":[{"path":"a","sha256":"` + strings.Repeat("0", 64) + `"}]`, "inputs.0.sha256"},
		{`"inputs":[{"path":"a","manifest":7}]`, "inputs.0.manifest"},
		{`"inputs":[{"path":"a",` + sum + `,"size":-1}]`, "inputs.0.size"},
		{`"inputs":[{"path":"a",` + sum + `,"size":1099511627777}]`, "inputs.0.size"},
		{`"inputs":[{"path":"a","manifest":"` + oneHash + `","size":33554433}]`, "inputs.0.size"},
		{`"inputs":[{"path":"a","content":"x","size":1}]`, "inputs.0.size"},
		{`"inputs":[{"path":"a","url":"https://x/","size":1}]`, "inputs.0.size"},
		{`"inputs":[{"path":"a","manifest":"` + oneHash + `","executable":true}]`, "inputs.0.executable"},
		{`"inputs":[{"path":"a",` + sum + `,"executable":1}]`, "inputs.0.executable"},
		{`"inputs":[{"path":"a","url":"http://x/y"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"s3://bucket"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"s3://Bucket/y"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"s3://u:p@bucket/y"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"s3://bucket/y/../z"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"s3://bucket/y\u202e"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"https:///y"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"https://u:p@x/y"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"https://x/y#z"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"a","url":"https://x/` + strings.Repeat("y", 2048) + `"}]`, "inputs.0.url"},
		{`"inputs":[{"path":"","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"../a","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"a/./b","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"a\u0000","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"/etc/passwd","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"/a/../b","content":""}],"image":"i"`, "inputs.0.path"},
		{`"inputs":[{"path":"a","content":""},{"path":"a",` + sum + `}]`, "inputs.1.path"},
		{`"inputs":[{"path":"a/b","content":""},{"path":"c","content":""},{"path":"a","content":""}]`, "inputs.2.path"},
		{`"inputs":[{"path":"a","manifest":"` + oneHash + `"},{"path":"a","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"a/b/c","manifest":"` + oneHash + `"},{"path":"a/b","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"/a/b","manifest":"` + oneHash + `"},{"path":"/a","content":""}],"image":"i"`, "inputs.0.path"},
		{`"inputs":[{"path":"a","content":""},{"path":"b","each":"` + oneHash + `"}]`, "inputs.1.each"},
		{`"inputs":[` + many + `]`, "inputs"},
		{`"outputs":[]`, "outputs"},
		{`"outputs":{"max":"1Gi"}`, "outputs"},
		{`"outputs":{"when":"success"}`, "outputs"},
		{`"outputs":{"paths":"a"}`, "outputs.paths"},
		{`"outputs":{"paths":["a","/b"]}`, "outputs.paths.1"},
		{`"outputs":{"paths":["a/**"]}`, "outputs.paths.0"},
		{`"outputs":{"paths":["../a"]}`, "outputs.paths.0"},
		{`"outputs":{"optional":["[a"]}`, "outputs.optional.0"},
		{`"outputs":{"paths":["a"],"max":5}`, "outputs.max"},
		{`"outputs":{"paths":["a"],"max":"0"}`, "outputs.max"},
		{`"outputs":{"paths":["a"],"max":"5GB"}`, "outputs.max"},
		{`"outputs":{"paths":["a"],"max":"5Ti"}`, "outputs.max"},
		{`"outputs":{"paths":["a"],"when":"failure"}`, "outputs.when"},
		{`"outputs":{"path":["a"]}`, "outputs.path"},
		{`"outputs":{"paths":[` + strings.Repeat(`"a",`, MaxOutputGlobs) + `"b"],"optional":[` + globsUpTo(256) + `]}`, "outputs"},
		{`"selectors":["cloudshare/files-1g=all.sites"]`, "selectors"},
		{`"outputs":{"paths":["a"]},"selectors":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p"]`, "selectors"},
	} {
		text, field := c[0], c[1]
		_, err := ParseSpec([]byte(`{"command":["a"],` + text + `}`))
		var bad *SpecError
		if !errors.As(err, &bad) || bad.Field != field || bad.Malformed {
			t.Errorf("%.90s: %v, want field %s", text, err, field)
			continue
		}
		if msg := err.Error(); strings.ContainsAny(msg, "\n\x00") || len(msg) > 400 {
			t.Errorf("%.90s: the message is not one short line: %q", text, msg)
		}
	}
	for _, c := range [][2]string{
		{`"inputs":[{"path":"a","path":"b","content":""}]`, "inputs.0.path"},
		{`"inputs":[{"path":"a","content":"","content":""}]`, "inputs.0.content"},
		{`"outputs":{"max":"1","max":"2","paths":["a"]}`, "outputs.max"},
	} {
		text, field := c[0], c[1]
		_, err := ParseSpec([]byte(`{"command":["a"],` + text + `}`))
		if bad, ok := errors.AsType[*SpecError](err); !ok || !bad.Malformed || bad.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func globsUpTo(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"g%d"`, i)
	}
	return strings.Join(list, ",")
}

// TestFilesAreSealed: inputs and outputs are of the text that only owner and executor read; the state learns no more
// than that there are outputs, and how much room is needed.
func TestFilesAreSealed(t *testing.T) {
	spec := parsed(t, filesSpec)
	spec.FileBytes = 15 << 30
	js := spec.JobSpec("a", 7, 0, plain{})
	if !js.Delivers || !reflect.DeepEqual(js.Selectors, []string{command.FilesSelector("a", 16<<30+1)}) {
		t.Errorf("delivers %t, selectors %q", js.Delivers, js.Selectors)
	}
	_, sealed, _ := strings.Cut(string(js.Payload), "\x01")
	want := `{"command":["./run.sh"],` + filesSpec[strings.Index(filesSpec, `"inputs"`):]
	if sealed != want || strings.Contains(strings.TrimSuffix(string(js.Payload), sealed), "puts") {
		t.Errorf("payload %s\nwant %s", js.Payload, want)
	}
	back, err := SpecOf(js, plain{})
	if spec.FileBytes = 0; err != nil || !reflect.DeepEqual(back, spec) {
		t.Errorf("back: %+v, %v", back, err)
	}
	onlyIn := parsed(t, `{"command":["a"],"inputs":[{"path":"a","content":"b"}]}`)
	if js = onlyIn.JobSpec("a", 7, 0, plain{}); js.Delivers || len(js.Selectors) != 1 {
		t.Errorf("%+v", js)
	}
}

// TestForeignFilesAreChecked: who runs a job trusts no place that its owner's text names.
func TestForeignFilesAreChecked(t *testing.T) {
	const absolute = `{"inputs":[{"path":"/etc/x","content":""}]}`
	if _, err := ReadTexts([]byte(`{"image":"i"}`), []byte(absolute)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		absolute, `{"inputs":[{"path":"../x","content":""}]}`, `{"inputs":[{"path":"x"}]}`, `{"outputs":{"paths":["/x"]}}`,
		`{"inputs":[{"path":"x","content":""},{"path":"x/y","content":""}]}`,
	} {
		if s, err := ReadTexts([]byte(`{}`), []byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, s)
		}
	}
	if s, err := ReadTexts([]byte(absolute), nil); err == nil {
		t.Errorf("in public: %+v", s)
	}
}

// TestMeaningOfFiles: each field of a file makes another job; what the broker finds out does not.
func TestMeaningOfFiles(t *testing.T) {
	base := filesSpec[:len(filesSpec)-1]
	seen := map[[32]byte]string{}
	for _, change := range [][2]string{
		{},
		{`"ref.fa"`, `"ref.fasta"`},
		{oneHash, twoHash},
		{`,"executable":true}]`, `}]`},
		{`"manifest"`, `"each"`},
		{`x?y=1`, `x?y=2`},
		{`#!/bin/sh`, `#!/bin/bash`},
		{`"model/"`, `"models/"`},
		{`"optional":["log"],`, ``},
		{`1536Mi`, `1537Mi`},
		{`,"when":"success"`, ``},
	} {
		spec := parsed(t, strings.Replace(base, change[0], change[1], 1)+"}")
		m := spec.Meaning()
		if before, twice := seen[m]; twice {
			t.Errorf("%q means the same as %q", change, before)
		}
		seen[m] = fmt.Sprint(change)
		for i := range spec.Inputs {
			spec.Inputs[i].Blob.Size = 77
		}
		if spec.FileBytes = 1 << 35; spec.Meaning() != m {
			t.Errorf("%q: what a broker finds out changes the meaning", change)
		}
	}
	plain := parsed(t, `{"command":["a"]}`).Meaning()
	if parsed(t, `{"command":["a"],"inputs":[],"outputs":{"optional":[]}}`).Meaning() != plain {
		t.Error("no files are not what no word of them is")
	}
}

func TestCheckEach(t *testing.T) {
	for _, c := range []struct {
		numbers string
		files   int
		ok      bool
	}{
		{`"count":3`, 3, true},
		{`"count":3`, 4, false},
		{`"count":3`, 2, false},
		{`"indices":"1,5-7"`, 8, true},
		{`"indices":"1,5-7"`, 7, false},
		{`"indices":"0"`, 0, false},
	} {
		spec := parsed(t, `{"command":["a"],"inputs":[{"path":"in","each":"`+oneHash+`"}],`+c.numbers+`}`)
		err := spec.CheckEach(0, c.files)
		if bad, is := errors.AsType[*SpecError](err); (err == nil) != c.ok || err != nil && (!is || bad.Field != "inputs.0.each") {
			t.Errorf("%s, %d files: %v", c.numbers, c.files, err)
		}
	}
}

// TestFilesWithinBounds: no job may need more room than the largest class has.
func TestFilesWithinBounds(t *testing.T) {
	spec := parsed(t, `{"command":["a"],"outputs":{"paths":["a"],"max":"4Ti"}}`)
	if err := spec.CheckSize(); err != nil {
		t.Error(err)
	}
	spec.FileBytes = 1
	if bad, ok := errors.AsType[*SpecError](spec.CheckSize()); !ok || bad.Field != "inputs" {
		t.Error(spec.CheckSize())
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1Ki", 1536 << 20: "1536Mi", 1 << 30: "1Gi", 4 << 40: "4Ti", 1000: "1000",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
		if back, err := ParseBytes(FormatBytes(n)); err != nil || back != n {
			t.Errorf("%d: back %d, %v", n, back, err)
		}
	}
	if n, err := ParseBytes("1.5k"); err != nil || n != 1500 {
		t.Error(n, err)
	}
}
