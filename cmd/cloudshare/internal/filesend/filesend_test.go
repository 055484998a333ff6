package filesend

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/files"
)

// write writes files below a folder, and returns it.
func write(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// entries reads a manifest.
func entries(t *testing.T, manifest []byte) (list []files.Entry) {
	t.Helper()
	r := files.NewManifestReader(bytes.NewReader(manifest))
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
}

// TestInputsArrive: a file, a directory and a file for each task are what the inputs name, and are sent once.
func TestInputsArrive(t *testing.T) {
	b, s, seen := newBroker(t)
	big := strings.Repeat("0123456789abcdef", 2000)
	dir := write(t, map[string]string{
		"run.sh": "#!/bin/sh\n", "cfg/a/b": "deep", "cfg/a-b": "flat", "cfg/big": big,
		"in/2.csv": "two", "in/10.csv": "ten", "in/1.csv": "one",
	})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	sources := []Source{
		{Local: dir + "/run.sh", Path: "run.sh"},
		{Local: dir + "/cfg", Path: "etc"},
		{Local: dir + "/in/*.csv", Path: "in.csv", Each: true},
	}
	inputs, tasks, err := s.Prepare(t.Context(), sources)
	if err != nil || tasks != 3 || b.whole+len(b.blobs) != 0 {
		t.Fatalf("%d tasks, %d sent, %v", tasks, b.whole, err)
	}
	sent, err := s.Send(t.Context())
	if err != nil || b.whole != 4 || sent < int64(len(big)) {
		t.Fatalf("%d bytes of %d blobs, %v", sent, b.whole, err)
	}
	run, cfg, in := inputs[0], inputs[1], inputs[2]
	if run.Path != "run.sh" || !run.Executable || *run.Size != 10 || string(b.blobs[run.SHA256]) != "#!/bin/sh\n" {
		t.Errorf("%+v", run)
	}
	list := entries(t, b.blobs[cfg.Manifest])
	if cfg.Path != "etc" || *cfg.Size != int64(len(b.blobs[cfg.Manifest])) || len(list) != 3 ||
		list[0].Path != "a/b" || string(list[0].Inline) != "deep" || list[1].Path != "a-b" || list[2].Path != "big" {
		t.Errorf("%+v: %+v", cfg, list)
	}
	if string(b.blobs[list[2].Hash.String()]) != big {
		t.Error("the large file of the directory was not sent")
	}
	var each []string
	for _, e := range entries(t, b.blobs[in.Each]) {
		each = append(each, e.Path+"="+string(e.Inline))
	}
	if want := []string{"1.csv=one", "10.csv=ten", "2.csv=two"}; !slices.Equal(each, want) || in.Manifest != "" {
		t.Errorf("%q, %+v", each, in)
	}
	if len(seen.steps) != 4 || !strings.HasPrefix(seen.steps[0], "reading ") || !strings.HasPrefix(seen.steps[2], "sending ") ||
		strings.TrimPrefix(seen.steps[2], "sending ")+" done" != seen.steps[3] {
		t.Errorf("progress: %q", seen.steps)
	}
	if sent, err = s.Send(t.Context()); err != nil || sent != 0 || b.whole != 4 {
		t.Errorf("again %d bytes, %d blobs, %v", sent, b.whole, err)
	}
}

// TestLargeFilesGoInPieces: an upload that is cut off and refused in between goes on where the broker is.
func TestLargeFilesGoInPieces(t *testing.T) {
	b, s, seen := newBroker(t)
	content := bytes.Repeat([]byte("cloudshare!"), 2<<20) // 22 MiB
	dir := write(t, map[string]string{"big": string(content)})
	inputs, _, err := s.Prepare(t.Context(), []Source{{Local: dir + "/big", Path: "big"}})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	b.trouble = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		switch asked++; asked {
		case 2: // half of a piece arrives, then the connection is cut
			id := strings.TrimPrefix(r.URL.Path, "/v1/uploads/")
			half, _ := io.ReadAll(io.LimitReader(r.Body, 4<<20))
			b.parts[id] = append(b.parts[id], half...)
			panic(http.ErrAbortHandler)
		case 3:
			refuse(w, http.StatusBadGateway, "away")
			return true
		case 4: // what it had is gone
			clear(b.parts)
		}
		return false
	}
	if _, err := s.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.blobs[inputs[0].SHA256], content) || b.whole != 0 {
		t.Errorf("%d bytes arrived, %d whole", len(b.blobs[inputs[0].SHA256]), b.whole)
	}
	if last := seen.steps[len(seen.steps)-1]; last != "23068672 done" {
		t.Errorf("progress: %q", seen.steps)
	}
}

// TestUploadEnds: a broker that is away for good, and one that has no room, end it.
func TestUploadEnds(t *testing.T) {
	for status, name := range map[int]string{http.StatusServiceUnavailable: "store-full", http.StatusBadGateway: "away"} {
		b, s, _ := newBroker(t)
		dir := write(t, map[string]string{"big": strings.Repeat("x", 9<<20), "small": "x"})
		for _, local := range []string{"/big", "/small"} {
			if _, _, err := s.Prepare(t.Context(), []Source{{Local: dir + local, Path: "x"}}); err != nil {
				t.Fatal(err)
			}
			b.trouble = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/v1/blobs/missing" {
					return false
				}
				refuse(w, status, name)
				return true
			}
			_, err := s.Send(t.Context())
			var p *wire.Problem
			if !errors.As(err, &p) || p.Status != status || !strings.Contains(err.Error(), "send "+dir) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestChangedFilesAreRefused: whenever that is noticed, by name.
func TestChangedFilesAreRefused(t *testing.T) {
	_, s, _ := newBroker(t)
	dir := write(t, map[string]string{"small": "one", "big": strings.Repeat("x", 9<<20), "late": "one"})
	for _, name := range []string{"small", "big"} {
		s.blobs, s.order = map[string]blob{}, nil
		if _, _, err := s.Prepare(t.Context(), []Source{{Local: filepath.Join(dir, name), Path: "x"}}); err != nil {
			t.Fatal(err)
		}
		was, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		change(t, filepath.Join(dir, name), strings.Repeat("y", int(was.Size())))
		_, err = s.Send(t.Context())
		if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), filepath.Join(dir, name)+" ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, content := range []string{"two", "longer", ""} {
		list, _, err := s.scan(Source{Local: filepath.Join(dir, "late")})
		if err != nil {
			t.Fatal(err)
		}
		change(t, filepath.Join(dir, "late"), content)
		if err := s.hash(t.Context(), &list[0]); !errors.Is(err, ErrChanged) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestChangeOnTheWay: a file that changes while its pieces are sent is refused by name, and nothing of what it has now
// is sent.
func TestChangeOnTheWay(t *testing.T) {
	b, s, _ := newBroker(t)
	name := filepath.Join(write(t, map[string]string{"big": strings.Repeat("x", 20<<20)}), "big")
	if _, _, err := s.Prepare(t.Context(), []Source{{Local: name, Path: "x"}}); err != nil {
		t.Fatal(err)
	}
	b.trouble = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && r.Header.Get("Upload-Offset") == "0" {
			body, err := io.ReadAll(r.Body) // it is on its way before the file changes
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			change(t, name, strings.Repeat("y", 20<<20))
		}
		return false
	}
	_, err := s.Send(t.Context())
	b.mu.Lock()
	defer b.mu.Unlock()
	if !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), name+" ") || len(b.blobs) > 0 {
		t.Errorf("%v, and %d blobs are there", err, len(b.blobs))
	}
	for id, part := range b.parts {
		if bytes.ContainsRune(part, 'y') {
			t.Errorf("%s has bytes of both", id)
		}
	}
}

// change writes a file, and has its time differ however coarse clocks are.
func change(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// TestWrongHashIsAChange: what changes behind the last look the broker notices.
func TestWrongHashIsAChange(t *testing.T) {
	b, s, _ := newBroker(t)
	dir := write(t, map[string]string{"small": "one", "big": strings.Repeat("x", 9<<20)})
	sources := []Source{{Local: dir + "/small", Path: "a"}, {Local: dir + "/big", Path: "b"}}
	if _, _, err := s.Prepare(t.Context(), sources); err != nil {
		t.Fatal(err)
	}
	b.trouble = func(w http.ResponseWriter, r *http.Request) bool {
		if wrong := r.Method == http.MethodPut || r.Method == http.MethodPatch; !wrong {
			return false
		}
		refuse(w, http.StatusUnprocessableEntity, "wrong-hash")
		return true
	}
	for _, name := range s.order {
		stored := s.blobs[name]
		err := s.sendBlob(t.Context(), &stored)
		if !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), dir) {
			t.Errorf("%v", err)
		}
	}
}

// TestEmptyDirectoriesAreTold: they do not travel, and who sends a directory hears which are left out.
func TestEmptyDirectoriesAreTold(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		dirs  []string
		want  string
	}{
		{map[string]string{"d/a": "", "d/e/b": ""}, nil, ""},
		{map[string]string{"d/a": ""}, []string{"d/e"}, "/d/e is not sent: an empty directory, and files alone travel"},
		{nil, []string{"d"}, "/d is not sent: an empty directory, and files alone travel"},
		{
			map[string]string{"d/f/a": "", "d/z": ""},
			[]string{"d/b/c", "d/f/e", "d/zz"},
			"/d/b/c and 2 others in /d are not sent: an empty directory, and files alone travel",
		},
	} {
		_, s, seen := newBroker(t)
		dir := write(t, c.files)
		for _, name := range c.dirs {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		list, _, err := s.scan(Source{Local: dir + "/d"})
		if err != nil || len(list) != len(c.files) {
			t.Errorf("%+v, %v", list, err)
		}
		if got := strings.ReplaceAll(strings.Join(seen.notes, "\n"), dir, ""); got != c.want {
			t.Errorf("%v beside %v: %q, want %q", c.dirs, c.files, got, c.want)
		}
	}
}

// TestLinksAndOthers: a link that is named is followed; one in a directory is passed over, as what is no file is.
func TestLinksAndOthers(t *testing.T) {
	_, s, seen := newBroker(t)
	dir := write(t, map[string]string{"d/file": "x", "secret": "s"})
	for name, to := range map[string]string{"d/link": "../secret", "d/loop": ".", "top": "d", "one": "secret"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "d", "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	list, isDir, err := s.scan(Source{Local: dir + "/top"})
	if err != nil || !isDir || len(list) != 1 || list[0].path != "file" || list[0].local != dir+"/top/file" {
		t.Errorf("%+v, %v", list, err)
	}
	want := []string{dir + "/top/fifo and 2 others in " + dir + "/top are not sent: no regular file"}
	if !slices.Equal(seen.notes, want) {
		t.Errorf("%q", seen.notes)
	}
	if list, isDir, err = s.scan(Source{Local: dir + "/one"}); err != nil || isDir || list[0].info.Size() != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, _, err = s.scan(Source{Local: dir + "/d/fifo"}); !errors.Is(err, errIrregular) {
		t.Error(err)
	}
}

// TestBadSources: what cannot be sent is named.
func TestBadSources(t *testing.T) {
	_, s, _ := newBroker(t)
	dir := write(t, map[string]string{"a/one": "", "b/one": "", "b/two": "", "bad/x\xff": "", "bad2/a\nb": "", "sub/x/y": ""})
	for name, sources := range map[string][]Source{
		"none":                       {{Local: dir + "/none", Path: "x"}},
		"names no file":              {{Local: dir + "/z*", Path: "x", Each: true}},
		"sub/* names no file":        {{Local: dir + "/sub/*", Path: "x", Each: true}},
		"syntax error in pattern":    {{Local: dir + "/[", Path: "x", Each: true}},
		"UTF-8":                      {{Local: dir + "/bad", Path: "x"}},
		"control character":          {{Local: dir + "/bad2", Path: "x"}},
		"names 2 files, and another": {{Local: dir + "/a/*", Path: "x", Each: true}, {Local: dir + "/b/*", Path: "y", Each: true}},
	} {
		if _, _, err := s.Prepare(t.Context(), sources); err == nil || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), "\n") || !utf8.ValidString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := admit(make([]found, files.MaxEntries), found{path: "x"}); err == nil || !strings.Contains(err.Error(), "100000 files") {
		t.Error(err)
	}
}

func TestGiven(t *testing.T) {
	dir := write(t, map[string]string{"a:b": "", "c": ""})
	t.Chdir(dir)
	for text, want := range map[string]Source{
		"c": {Local: "c", Path: "c"}, "c:d/e": {Local: "c", Path: "d/e"}, "a:b": {Local: "a:b", Path: "a:b"},
		"a:b:x": {Local: "a:b", Path: "x"}, "../z/": {Local: "../z/", Path: "z"}, ".": {Local: ".", Path: filepath.Base(dir)},
		"none:/abs": {Local: "none", Path: "/abs"},
	} {
		if got, err := ParseInput(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", ":x", "c:"} {
		if got, err := ParseInput(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
	if got, err := ParseEach("d/*:in"); err != nil || got != (Source{Local: "d/*", Path: "in", Each: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "d/*", ":in", "d/*:"} {
		if got, err := ParseEach(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
	for text, want := range map[string][2]string{
		"s3://data/ref.fa:in/ref.fa": {"s3://data/ref.fa", "in/ref.fa"},
		"s3://data/a:b c?#%zz/ü+:p":  {"s3://data/a:b c?#%zz/ü+", "p"},
	} {
		if from, path, err := ParseURL(text); err != nil || from != want[0] || path != want[1] {
			t.Errorf("%s: %s, %s, %v", text, from, path, err)
		}
	}
	for _, bad := range []string{"s3://data:p", "s3://data/:p", "s3://data/ref.fa", "s3://data/ref.fa:", "s3://Data/x:p", "s3://data/../x:p"} {
		if from, path, err := ParseURL(bad); err == nil || !strings.Contains(err.Error(), "s3://BUCKET/KEY:PATH") {
			t.Errorf("%s: %s, %s, %v", bad, from, path, err)
		}
	}
	from, path, err := ParseURL("https://h:1/x?y=a:b:p")
	if got := [2]string{from, path}; err != nil || !reflect.DeepEqual(got, [2]string{"https://h:1/x?y=a:b", "p"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "https://h/x", "https://h:8080/x", "http://h/x:p", "h/x:p", "https://h/x:"} {
		if from, path, err := ParseURL(bad); err == nil {
			t.Errorf("%q: %q, %q", bad, from, path)
		}
	}
}

func TestImport(t *testing.T) {
	b, s, seen := newBroker(t)
	b.imports = 4
	if err := s.Import(t.Context(), "https://a.example/x", ""); err != nil {
		t.Fatal(err)
	}
	if want := []string{"fetching 100", "90 done"}; !slices.Equal(seen.steps, want) {
		t.Errorf("%q", seen.steps)
	}
	err := s.Import(t.Context(), "https://private/x", "")
	if err == nil || !strings.Contains(err.Error(), "have the broker fetch https://private/x") {
		t.Error(err)
	}
}
