package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const tesTasks = "/ga4gh/tes/v1/tasks"

// tesTask is what tests look at of a task.
type tesTask struct {
	ID, State, Name string
	Inputs          []struct{ Type, Content string }
	Tags            map[string]string
	Logs            []struct {
		Logs []struct {
			ExitCode *int `json:"exit_code"`
		}
		SystemLogs []string `json:"system_logs"`
	}
}

// tesList is a page of them.
type tesList struct {
	Tasks         []tesTask
	NextPageToken string `json:"next_page_token"`
}

// answer reads an answer, and fails if its status is another.
func answer[T any](t *testing.T, w *httptest.ResponseRecorder, status int) (out T) {
	t.Helper()
	if w.Code != status || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

type tesFailure struct {
	StatusCode int `json:"status_code"`
	Msg        string
}

func tesBody(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"executors":[{"image":"alpine","command":["true"]}]%s}`, name, more)
}

// TestTESTask: created, looked at, ended, cancelled.
func TestTESTask(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	id := answer[tesTask](t, ask(s, "POST", tesTasks, js, tesBody("n", `,"tags":{"a b":"c"}`)), 200).ID
	if id != "site-1.1" || f.jobs[0].Spec.Image != "alpine" || f.attached[1] == nil {
		t.Fatalf("%q %+v", id, f.jobs)
	}
	got := answer[tesTask](t, ask(s, "GET", tesTasks+"/"+id, "", ""), 200)
	if got.ID != id || got.State != "QUEUED" || got.Name != "" || got.Tags != nil {
		t.Errorf("MINIMAL: %+v", got)
	}
	got = answer[tesTask](t, ask(s, "GET", tesTasks+"/"+id+"?view=FULL", "", ""), 200)
	if got.Tags["a b"] != "c" || len(got.Logs) != 1 || got.Logs[0].Logs == nil {
		t.Errorf("FULL: %+v", got)
	}
	for _, path := range []string{id + ":cancel", id + "%3Acancel"} {
		answer[struct{}](t, ask(s, "POST", tesTasks+"/"+path, "", ""), 200)
	}
	f.end(1, node.AttachedEnd{State: "failed", ExitCode: new(int)})
	*f.attached[1].End.ExitCode = 4
	if got = answer[tesTask](t, ask(s, "GET", tesTasks+"/"+id+"?view=BASIC", "", ""), 200); got.State != "EXECUTOR_ERROR" || *got.Logs[0].Logs[0].ExitCode != 4 {
		t.Errorf("%+v", got)
	}
	f.elseErr = fmt.Errorf("job 1: %w", node.ErrEnded)
	answer[struct{}](t, ask(s, "POST", tesTasks+"/"+id+":cancel", "", ""), 200)
	f.elseErr = fmt.Errorf("job 1: %w", node.ErrNotFound) // its record is gone, and its end is not
	answer[struct{}](t, ask(s, "POST", tesTasks+"/"+id+":cancel", "", ""), 200)
	if got = answer[tesTask](t, ask(s, "GET", tesTasks+"/"+id+"?view=FULL", "", ""), 200); got.State != "EXECUTOR_ERROR" {
		t.Errorf("%+v", got)
	}
}

// TestTESRefusals are in the service's own form, with a sentence, and nothing is accepted.
func TestTESRefusals(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	for _, c := range []struct {
		method, path, kind, body string
		status                   int
		word                     string
	}{
		{"POST", tesTasks, js, `{}`, 400, "executors"},
		{"POST", tesTasks, js, `[`, 400, "JSON"},
		{"POST", tesTasks, js, tesBody("n", `,"inputs":[{"path":"/a","url":"/etc/passwd"}]`), 400, "tes.roots"},
		{"POST", tesTasks, js, tesBody("n", `,"resources":{"cpu_cores":1e12}`), 400, "resources.cpu"},
		{"POST", tesTasks, js, strings.Repeat(" ", 8<<20+1), 413, "8388608 bytes: give large contents a url"},
		{"POST", tesTasks, "text/plain", tesBody("n", ""), 415, "Content-Type"},
		{"GET", tesTasks + "/site-1.9", "", "", 404, "site-1.9"},
		{"GET", tesTasks + "/nonsense", "", "", 404, "nonsense"},
		{"GET", tesTasks + "/site-1.1?view=ALL", "", "", 400, "MINIMAL"},
		{"POST", tesTasks + "/site-1.9:cancel", "", "", 404, "site-1.9"},
		{"POST", tesTasks + "/site-1.9", "", "", 404, ":cancel"},
		{"GET", tesTasks + "?view=none", "", "", 400, "BASIC"},
		{"GET", tesTasks + "?state=DONE", "", "", 400, "COMPLETE"},
		{"GET", tesTasks + "?page_size=0", "", "", 400, "2047"},
		{"GET", tesTasks + "?page_size=2048", "", "", 400, "2047"},
		{"GET", tesTasks + "?page_size=x", "", "", 400, "2047"},
		{"GET", tesTasks + "?page_token=x", "", "", 400, "page_token"},
		{"GET", tesTasks + "?page_token=" + strings.Repeat("A", 5000), "", "", 400, "page_token"},
		{"GET", tesTasks + "?tag_value=x", "", "", 400, "tag_key"},
		{"GET", tesTasks + "?name_prefix=" + strings.Repeat("A", 2000), "", "", 400, "1024"},
	} {
		got := answer[tesFailure](t, ask(s, c.method, c.path, c.kind, c.body), c.status)
		if got.StatusCode != c.status || !strings.Contains(got.Msg, c.word) || strings.Contains(got.Msg, "\n") {
			t.Errorf("%s %.60s: %+v, want %q", c.method, c.path, got, c.word)
		}
	}
	if len(f.jobs) != 0 {
		t.Errorf("%d jobs", len(f.jobs))
	}
	f.submit = fmt.Errorf("%w: too many", node.ErrAttachedFull)
	w := ask(s, "POST", tesTasks, js, tesBody("n", ""))
	if got := answer[tesFailure](t, w, 503); !strings.Contains(got.Msg, "too many") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%+v %v", got, w.Header())
	}
}

// TestTESList: newest first, in pages, by name, state and tags.
func TestTESList(t *testing.T) {
	f := newFake("site-1")
	s := serve(t, f, Config{})
	for i, more := range []string{`,"tags":{"foo":"bar"}`, `,"tags":{"foo":"bat"}`, `,"tags":{"foo":""}`, `,"tags":{"foo":"bar","baz":"bat"}`, ""} {
		answer[tesTask](t, ask(s, "POST", tesTasks, js, tesBody(fmt.Sprintf("name-%d", i+1), more)), 200)
	}
	answer[struct{}](t, ask(s, "POST", "/v1/jobs", js, `{"command":["native"]}`), 202)
	f.end(2, node.AttachedEnd{State: "succeeded"})
	ids := func(query string) (out []string) {
		next := ""
		for {
			page := answer[tesList](t, ask(s, "GET", tesTasks+"?page_size=2&page_token="+next+"&"+query, "", ""), 200)
			for _, task := range page.Tasks {
				out = append(out, strings.TrimPrefix(task.ID, "site-1."))
			}
			if next = page.NextPageToken; next == "" {
				return out
			}
		}
	}
	for query, want := range map[string]string{
		"":                          "5 4 3 2 1",
		"name_prefix=name-3":        "3",
		"name_prefix=ame":           "",
		"state=COMPLETE":            "2",
		"state=QUEUED":              "5 4 3 1",
		"state=PREEMPTED":           "",
		"tag_key=foo":               "4 3 2 1",
		"tag_key=foo&tag_value=bar": "4 1",
		"tag_key=foo&tag_value=bar&tag_key=baz&tag_value=bat": "4",
		"tag_key=foo&tag_value=&tag_key=baz&tag_value=":       "4",
		"tag_key=foo&tag_key=baz&tag_value=bar&view=FULL":     "4",
		"tag_key=none": "",
	} {
		if got := ids(query); strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", query, got, want)
		}
	}
}

// TestTESOfUsers: each sees and ends their own tasks, an operator all; tokens come as Bearer or by Basic.
func TestTESOfUsers(t *testing.T) {
	u := newUsers(t)
	ids := map[string]string{}
	for _, who := range []string{"alice", "bob"} {
		ids[who] = answer[tesTask](t, u.as(who, "POST", tesTasks, tesBody(who, "")), 200).ID
	}
	for who, want := range map[string]int{"alice": 1, "bob": 1, "operator": 2} {
		if got := answer[tesList](t, u.as(who, "GET", tesTasks, ""), 200); len(got.Tasks) != want {
			t.Errorf("%s: %+v", who, got)
		}
	}
	for _, c := range [][2]string{{"GET", ""}, {"GET", "?view=FULL"}, {"POST", ":cancel"}} {
		answer[tesFailure](t, u.as("alice", c[0], tesTasks+"/"+ids["bob"]+c[1], ""), 403)
	}
	answer[tesTask](t, u.as("operator", "GET", tesTasks+"/"+ids["bob"], ""), 200)
	basic := func(path, password string) int {
		return ask(u.Server, "GET", path, "", "", "Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte("whoever:"+password))).Code
	}
	if got := []int{
		basic(tesTasks, u.tokens["alice"]), basic(tesTasks, "wrong"), basic("/v1/jobs", u.tokens["alice"]),
		ask(u.Server, "GET", tesTasks, "", "", "Authorization", "Basic !").Code, ask(u.Server, "GET", tesTasks, "", "").Code,
	}; !slices.Equal(got, []int{200, 401, 401, 401, 401}) {
		t.Errorf("%v", got)
	}
}

// TestTESInputs: files below the user's roots, folders and large contents are brought into the store.
func TestTESInputs(t *testing.T) {
	root := t.TempDir()
	write := func(rel, content string) {
		at := filepath.Join(root, rel)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if err = errors.Join(err, os.WriteFile(at, []byte(content), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("l", 100<<10)
	write("a b.txt", "a")
	write("dir/z/x.txt", "x")
	write("dir/y.txt", large)
	if err := os.Symlink("/etc", filepath.Join(root, "dir/etc")); err != nil {
		t.Fatal(err)
	}
	f := newFake("site-1")
	f.keepFiles(t, t.TempDir(), 1<<20)
	s := serve(t, f, Config{TESRoots: exports.Roots{exports.OwnUser: {{Name: root, Folder: root}}}})
	at := "file://" + (&url.URL{Path: root}).EscapedPath()
	body := tesBody("n", fmt.Sprintf(`,"inputs":[{"path":"/a","url":%q},{"path":"/d","url":%q,"type":"DIRECTORY"},{"path":"/c","content":%q}]`,
		at+"/a%20b.txt", root+"/dir", large))
	answer[tesTask](t, ask(s, "POST", tesTasks, js, body), 200)
	<-f.settled
	in := f.jobs[0].Spec.Inputs
	if len(in) != 3 || in[0].Blob != files.BlobOf([]byte("a")) || !in[0].Executable ||
		in[1].From != jobspec.FromDirectory || in[2].Blob != files.BlobOf([]byte(large)) {
		t.Fatalf("%+v", in)
	}
	r, err := f.OpenBlob("", in[1].Blob.Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var paths []string
	for e, err := range files.NewManifestReader(r).All() {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, e.Path)
	}
	if !slices.Equal(paths, []string{"y.txt", "z/x.txt"}) {
		t.Errorf("%v", paths)
	}
	got := answer[tesTask](t, ask(s, "GET", tesTasks+"/site-1.1?view=FULL", "", ""), 200)
	if got.Inputs[2].Content != large || got.Inputs[0].Type != "FILE" {
		t.Errorf("%.200v", got)
	}
	for _, bad := range []string{root + "/none", root + "/dir", root + "/dir/etc/passwd"} {
		msg := answer[tesFailure](t, ask(s, "POST", tesTasks, js, tesBody("n", fmt.Sprintf(`,"inputs":[{"path":"/a","url":%q}]`, bad))), 400).Msg
		if !strings.Contains(msg, "inputs.0.url") {
			t.Errorf("%s: %s", bad, msg)
		}
	}
}

// TestTESServiceInfo says what is known here, and the asker's roots.
func TestTESServiceInfo(t *testing.T) {
	s := serve(t, newFake("site-1"), Config{TESRoots: exports.Roots{"*": {{Name: "/scratch", Folder: "/scratch", ReadOnly: true}}}})
	got := answer[struct {
		ID, Name, Version string
		Type              struct{ Group, Artifact, Version string }
		Organization      struct{ Name, URL string }
		Storage           []string
		Parameters        []string `json:"tesResources_backend_parameters"`
	}](t, ask(s, http.MethodGet, "/ga4gh/tes/v1/service-info", "", ""), 200)
	if got.Type.Artifact != "tes" || got.Type.Group != "org.ga4gh" || got.Type.Version != "1.1.0" || got.ID == "" || got.Organization.URL == "" ||
		!slices.Equal(got.Storage, []string{"file:///scratch"}) || !slices.Equal(got.Parameters, []string{"gpu", "priority", "sites", "timeout"}) {
		t.Errorf("%+v", got)
	}
}
