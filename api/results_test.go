package api

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/files"
)

// left are the files of a task, of which one is a blob of its own.
func left(big string) map[string]string {
	return map[string]string{"out/a.csv": "1,2\n", "out/b.bin": big, "xrun": "#!/bin/sh\n", "empty": ""}
}

// newResults is a site with a job of five tasks, of which the second and fourth have left files, and one of one task.
func newResults(t *testing.T) (s *site, big string) {
	t.Helper()
	s = newSite(t)
	for _, spec := range []string{`{"command":["a"],"indices":"3,17,40-42"}`, `{"command":["a"]}`} {
		if w := ask(s.Server, "POST", "/v1/jobs", js, spec); w.Code != 202 {
			t.Fatal(w.Body)
		}
	}
	big = string(randomBytes(100_000))
	s.fake.leave(t, "site-1.1", 1, left(big))
	s.fake.leave(t, "site-1.1", 3, map[string]string{"only": "one"})
	s.fake.leave(t, "site-1.2", 0, left(big))
	return s, big
}

// TestFilesAreListed by task and path, a page at a time, whatever its length.
func TestFilesAreListed(t *testing.T) {
	s, _ := newResults(t)
	const want = "17 empty 0 false, 17 out/a.csv 4 false, 17 out/b.bin 100000 false, 17 xrun 10 true, 41 only 3 false, "
	for limit := 1; limit < 7; limit++ {
		got, cursor := "", ""
		for pages := 0; ; pages++ {
			page := readAs[wire.List[wire.ResultFile]](t, s.Server, fmt.Sprintf("/v1/jobs/site-1.1/files?limit=%d&cursor=%s", limit, cursor))
			for _, f := range page.Items {
				got += fmt.Sprintf("%d %s %d %t, ", f.Task, f.Path, f.Size, f.Executable)
			}
			if cursor = page.Next; cursor == "" || pages > 9 {
				break
			}
		}
		if got != want {
			t.Errorf("pages of %d: %s", limit, got)
		}
	}
	for path, want := range map[string]int{"?task=41": 1, "?task=17": 4, "?task=3": 0} {
		page := readAs[wire.List[wire.ResultFile]](t, s.Server, "/v1/jobs/site-1.1/files"+path)
		if len(page.Items) != want || page.Next != "" {
			t.Errorf("%s: %+v", path, page)
		}
	}
	for path, status := range map[string]int{
		"?task=4": 404, "?task=x": 400, "?cursor=1": 400, "?cursor=01-0": 400, "?cursor=0--1": 400, "?limit=0": 400, "?attempt=1": 400,
	} {
		if w := ask(s.Server, "GET", "/v1/jobs/site-1.1/files"+path, "", ""); w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestManyFiles: a manifest with as many files as one may have is listed from its end as from its beginning.
func TestManyFiles(t *testing.T) {
	s, _ := newResults(t)
	many := map[string]string{}
	for i := range files.MaxEntries {
		many[fmt.Sprintf("d%02d/f%05d", i%100, i)] = ""
	}
	id := command.JobID{Site: "site-1", Num: 2}
	s.fake.results[id] = nil
	s.fake.leave(t, "site-1.2", 0, many)
	page := readAs[wire.List[wire.ResultFile]](t, s.Server, "/v1/jobs/site-1.2/files?limit=1000&cursor=0-99500")
	if len(page.Items) != 500 || page.Next != "" {
		t.Errorf("%d items, next %q", len(page.Items), page.Next)
	}
}

// TestFileIsTaken with its headers, whole and in parts, whatever is in its path.
func TestFileIsTaken(t *testing.T) {
	s, big := newResults(t)
	names := []string{"a b", "%41", "ü/é.txt", "a+b&c=d?e#f", "..a/...", `q"uo\te`, "x;y"}
	odd := map[string]string{}
	for _, n := range names {
		odd[n] = "of " + n
	}
	s.fake.results[command.JobID{Site: "site-1", Num: 2}] = nil
	s.fake.leave(t, "site-1.2", 0, odd)
	for _, n := range names {
		for _, path := range []string{url.PathEscape(n), strings.ReplaceAll(url.PathEscape(n), "%2F", "/")} {
			res, err := http.Get("http://" + s.Addr() + "/v1/jobs/site-1.2/files/" + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err = errors.Join(err, res.Body.Close()); err != nil || string(body) != "of "+n {
				t.Errorf("%s: %d %s %v", path, res.StatusCode, body, err)
			}
		}
	}
	const at = "/v1/jobs/site-1.1/files/out/b.bin?task=17"
	w := ask(s.Server, "GET", at, "", "")
	h := w.Header()
	if w.Code != 200 || w.Body.String() != big || h.Get("ETag") != `"`+files.HashOf([]byte(big)).String()+`"` ||
		h.Get("Content-Disposition") != `attachment; filename="b.bin"` || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || h.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%d %v, %d bytes", w.Code, h, w.Body.Len())
	}
	for ranges, want := range map[string]string{"bytes=10-19": big[10:20], "bytes=-5": big[len(big)-5:], "bytes=99990-": big[99_990:]} {
		if w = ask(s.Server, "GET", at, "", "", "Range", ranges); w.Code != 206 || w.Body.String() != want {
			t.Errorf("%s: %d, %d bytes", ranges, w.Code, w.Body.Len())
		}
	}
	for ranges, method := range map[string]string{"bytes=100000-": "GET", "bytes=7-3": "GET", "apples=1-2": "GET", "bytes=200000-": "HEAD"} {
		w = ask(s.Server, method, at, "", "", "Range", ranges)
		var p wire.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 416 || p.Type != wire.ProblemPrefix+"no-such-range" ||
			w.Header().Get("Content-Type") != wire.TypeProblem || w.Header().Get("Content-Range") != "bytes */100000" ||
			w.Header().Get("Content-Disposition") != "" || w.Header().Get("ETag") != "" || !strings.Contains(p.Detail, "the last 99999") {
			t.Errorf("%s of %s: %d %v %s", method, ranges, w.Code, w.Header(), w.Body)
		}
	}
	if w = ask(s.Server, "GET", at, "", "", "If-None-Match", h.Get("ETag")); w.Code != 304 {
		t.Errorf("known: %d", w.Code)
	}
	if w = ask(s.Server, "HEAD", at, "", ""); w.Code != 200 || w.Header().Get("Content-Length") != "100000" {
		t.Errorf("head: %d %v", w.Code, w.Header())
	}
	w = ask(s.Server, "GET", "/v1/jobs/site-1.2/files/"+url.PathEscape("ü/é.txt"), "", "")
	if got := w.Header().Get("Content-Disposition"); got != `attachment; filename="_.txt"; filename*=UTF-8''%C3%A9.txt` {
		t.Error(got)
	}
	for path, status := range map[string]int{
		"site-1.1/files/out/b.bin": 400, "site-1.1/files/none?task=17": 404, "site-1.1/files/only?task=17": 404, "site-1.2/files/": 404,
		"site-1.9/files/x": 404, "site-1.2/files/%2e%2e%2fsecret": 404, "nonsense/files/x": 404,
	} {
		if w := ask(s.Server, "GET", "/v1/jobs/"+path, "", ""); w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// untar reads an archive: its files in order, each with its mode and time.
func untar(archive io.Reader) (got string, err error) {
	for in := tar.NewReader(archive); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		n, err := io.Copy(io.Discard, in)
		if err != nil {
			return got, err
		}
		got += fmt.Sprintf("%s %o %d %d, ", h.Name, h.Mode, h.ModTime.Unix(), n)
	}
}

// TestArchive of all tasks, of one, and of a job with one; the same bytes each time.
func TestArchive(t *testing.T) {
	s, _ := newResults(t)
	const of17 = "empty 644 0 0, out/a.csv 644 0 4, out/b.bin 644 0 100000, xrun 755 0 10, "
	for path, want := range map[string]string{
		"site-1.1/files.tar":         "17/" + strings.ReplaceAll(strings.TrimSuffix(of17, ", "), ", ", ", 17/") + ", 41/only 644 0 3, ",
		"site-1.1/files.tar?task=17": of17, "site-1.2/files.tar": of17,
	} {
		w := ask(s.Server, "GET", "/v1/jobs/"+path, "", "")
		got, err := untar(bytes.NewReader(w.Body.Bytes()))
		if err != nil || got != want || w.Header().Get("Content-Type") != "application/x-tar" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %s %v %v", path, got, err, w.Header())
		}
		if again := ask(s.Server, "GET", "/v1/jobs/"+path, "", ""); !bytes.Equal(again.Body.Bytes(), w.Body.Bytes()) {
			t.Errorf("%s: other bytes at the second time", path)
		}
	}
	for path, status := range map[string]int{"site-1.1/files.tar?task=3": 404, "site-1.9/files.tar": 404, "site-1.1/files.tar?task=5": 404} {
		if w := ask(s.Server, "GET", "/v1/jobs/"+path, "", ""); w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// damage changes a byte of a blob of the site's own on the disk.
func (s *site) damage(content string) {
	s.t.Helper()
	hash := files.HashOf([]byte(content)).String()
	found, err := filepath.Glob(filepath.Join(s.dir, "data", "own", "*", "*", hash))
	if err != nil || len(found) != 1 {
		s.t.Fatal(found, err)
	}
	if err = os.Chmod(found[0], 0o600); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(found[0], os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{content[len(content)/2] ^ 1}, int64(len(content)/2))
	if err = errors.Join(err, f.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// TestDamageEndsInACut: no file and no archive comes to a clean end whose bytes are not right, and later it is known.
func TestDamageEndsInACut(t *testing.T) {
	s, big := newResults(t)
	s.damage(big)
	for _, path := range []string{"/v1/jobs/site-1.2/files.tar", "/v1/jobs/site-1.2/files/out/b.bin"} {
		res, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if known := path != "/v1/jobs/site-1.2/files.tar" && res.StatusCode == 410; err == nil && !known {
			t.Errorf("%s: %d, %d bytes and a clean end", path, res.StatusCode, len(body))
		}
	}
	if w := ask(s.Server, "GET", "/v1/jobs/site-1.2/files/out/b.bin", "", ""); w.Code != 410 || !strings.HasSuffix(typeOf(t, w.Body.Bytes()), ":results-gone") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(s.Server, "GET", "/v1/jobs/site-1.2/files/out/a.csv", "", ""); w.Code != 200 {
		t.Errorf("another file: %d", w.Code)
	}
}

// TestDamagedFileIsCut when it is the first to be read.
func TestDamagedFileIsCut(t *testing.T) {
	s, big := newResults(t)
	s.damage(big)
	res, err := http.Get("http://" + s.Addr() + "/v1/jobs/site-1.2/files/out/b.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil || len(body) >= len(big) {
		t.Errorf("%d bytes and a clean end", len(body))
	}
}

// TestResultsOutliveTheirJob: its files are listed and taken by their indices when nothing else is kept of it.
func TestResultsOutliveTheirJob(t *testing.T) {
	s, _ := newResults(t)
	s.fake.retired = true
	page := readAs[wire.List[wire.ResultFile]](t, s.Server, "/v1/jobs/site-1.1/files")
	if n := len(page.Items); n != 5 || page.Items[0].Task != 17 || page.Items[n-1].Task != 41 {
		t.Errorf("listed %+v", page.Items)
	}
	if w := ask(s.Server, "GET", "/v1/jobs/site-1.1/files/only?task=41", "", ""); w.Code != 200 || w.Body.String() != "one" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(s.Server, "GET", "/v1/jobs/site-1.1", "", ""); w.Code != 404 {
		t.Errorf("the job itself: %d", w.Code)
	}
}

// TestDamagedManifest shows nothing.
func TestDamagedManifest(t *testing.T) {
	s, big := newResults(t)
	s.damage(string(manifestOf(t, left(big), func(string) {})))
	if w := ask(s.Server, "GET", "/v1/jobs/site-1.2/files", "", ""); w.Code != 410 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestResultsAreTheUsersOwn: others of the site, and other sites, have none of them; an operator has all of the site's.
func TestResultsAreTheUsersOwn(t *testing.T) {
	u := newUsers(t)
	kept := u.fake.keepFiles(t, t.TempDir(), 1<<20)
	u.Server = New(Config{Access: u.store, Uploads: kept}, u.fake, prometheus.NewRegistry(), zerolog.Nop())
	id := u.submit("bob").ID
	u.fake.leave(t, id, 0, map[string]string{"a": "bob's"})
	for _, path := range []string{"/files", "/files/a", "/files.tar"} {
		u.refused("bob's"+path, u.as("alice", "GET", "/v1/jobs/"+id+path, ""), 403, "not-owner")
		for _, who := range []string{"bob", "operator"} {
			if w := u.as(who, "GET", "/v1/jobs/"+id+path, ""); w.Code != 200 {
				t.Errorf("%s asks for %s: %d %s", who, path, w.Code, w.Body)
			}
		}
		if w := askAsPeer(u.Server, "GET", "/v1/jobs/"+id+path); w.Code != 403 {
			t.Errorf("another site asks for %s: %d %s", path, w.Code, w.Body)
		}
		if w := ask(u.Server, "GET", "/v1/jobs/"+id+path, "", ""); w.Code != 401 {
			t.Errorf("nobody asks for %s: %d %s", path, w.Code, w.Body)
		}
		u.refused("another site's job", u.as("operator", "GET", "/v1/jobs/site-2.1"+path, ""), 404, "not-found")
	}
	u.fake.others = map[string]string{"site-2": "127.0.0.1:1"}
	u.refused("a job of another site's", u.as("operator", "GET", "/v1/jobs/site-2.1/files", ""), 403, "not-owner")
}

// TestListIsReadOnceForManyFiles: 20,000 small files of one task were fetched at 110 a second, since each request read
// the whole list of them.
func TestListIsReadOnceForManyFiles(t *testing.T) {
	s, _ := newResults(t)
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprintf("f%d", i)] = fmt.Sprint(i)
	}
	id := command.JobID{Site: "site-1", Num: 2}
	s.fake.results[id] = nil
	s.fake.leave(t, "site-1.2", 0, many)
	before := s.fake.opened.Load()
	for name, content := range many {
		w := ask(s.Server, "GET", "/v1/jobs/site-1.2/files/"+name, "", "")
		if w.Code != 200 || w.Body.String() != content {
			t.Fatalf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if n := s.fake.opened.Load() - before; n != 1 {
		t.Errorf("the list was read %d times", n)
	}
	if w := ask(s.Server, "GET", "/v1/jobs/site-1.2/files/none", "", ""); w.Code != 404 {
		t.Errorf("no such file: %d %s", w.Code, w.Body)
	}
	delete(s.fake.results, id) // its time is over
	if w := ask(s.Server, "GET", "/v1/jobs/site-1.2/files/f1", "", ""); w.Code != 404 {
		t.Errorf("gone: %d %s", w.Code, w.Body)
	}
}
