package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/files"
)

// broker is one that has files of a job a.1, and follows the contract.
type broker struct {
	t        *testing.T
	mu       sync.Mutex
	files    []File
	contents map[string]string // by TASK/PATH
	asked    int               // for bytes
	trouble  func(w http.ResponseWriter, r *http.Request) bool
}

func newBroker(t *testing.T) (*broker, *Fetcher) {
	t.Helper()
	b := &broker{t: t, contents: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/jobs/a.1/files", b.list)
	mux.HandleFunc("GET /v1/jobs/a.1/files/{path...}", b.file)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.trouble == nil || !b.trouble(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f := New(c, silent{})
	f.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return b, f
}

type silent struct{}

func (silent) Begin(string, int64) {}
func (silent) Done(int64)          {}
func (silent) End()                {}

func (b *broker) has(task uint32, path, content string) *File {
	b.files = append(b.files, File{
		Task: task, Attempt: 1, Path: path, Size: int64(len(content)), SHA256: files.HashOf([]byte(content)),
	})
	b.contents[fmt.Sprintf("%d/%s", task, path)] = content
	return &b.files[len(b.files)-1]
}

// list gives out two files a page.
func (b *broker) list(w http.ResponseWriter, r *http.Request) {
	items, next := []File{}, ""
	task := r.URL.Query().Get("task")
	from := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &from)
	for i := from; i < len(b.files); i++ {
		if task != "" && task != fmt.Sprint(b.files[i].Task) {
			continue
		}
		if len(items) == 2 {
			next = fmt.Sprint(i)
			break
		}
		items = append(items, b.files[i])
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "next": next})
}

func (b *broker) file(w http.ResponseWriter, r *http.Request) {
	b.asked++
	content, ok := b.contents[r.URL.Query().Get("task")+"/"+r.PathValue("path")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"type":"%snot-found","title":"No","status":404}`, wire.ProblemPrefix)
		return
	}
	_, _ = io.WriteString(w, content)
}

func fetchAll(t *testing.T, f *Fetcher, p Plan) (Outcome, error) {
	t.Helper()
	list, err := f.List(t.Context(), "a.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Job = "a.1"
	return f.Save(t.Context(), list, p)
}

// tree returns what is in a folder, as NAME=CONTENT.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		list = append(list, strings.TrimPrefix(name, dir+"/")+"="+string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestFetch brings all files, those of each task apart; a second time nothing has to come.
func TestFetch(t *testing.T) {
	b, f := newBroker(t)
	b.has(0, "out/a b%2f#?.csv", "zero")
	b.has(0, "run", "#!").Executable = true
	b.has(1, "out/a b%2f#?.csv", "one")
	b.has(17, "empty", "")
	dir := filepath.Join(t.TempDir(), "new", "results")
	got, err := fetchAll(t, f, Plan{Dir: dir, ByTask: true})
	if want := (Outcome{Fetched: 4, Bytes: 9}); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	want := []string{"0/out/a b%2f#?.csv=zero", "0/run=#!", "1/out/a b%2f#?.csv=one", "17/empty="}
	if found := tree(t, dir); !slices.Equal(found, want) {
		t.Errorf("%q", found)
	}
	for name, executable := range map[string]bool{"0/run": true, "17/empty": false} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || (info.Mode()&0o100 != 0) != executable || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	asked := b.asked
	got, err = fetchAll(t, f, Plan{Dir: dir, ByTask: true})
	if err != nil || got != (Outcome{Kept: 4}) || b.asked != asked {
		t.Errorf("again: %+v, %v", got, err)
	}
	one := uint32(1)
	if list, err := f.List(t.Context(), "a.1", &one); err != nil || len(list) != 1 || list[0].Task != 1 {
		t.Errorf("of task 1: %+v, %v", list, err)
	}
}

// TestNothingIsOverwritten: what has a file's name stays as it is, whatever it is; the others come. With force a file
// is overwritten, but no folder and no link.
func TestNothingIsOverwritten(t *testing.T) {
	b, f := newBroker(t)
	for _, name := range []string{"a", "folder", "link", "z"} {
		b.has(0, name, "new")
	}
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(dir+"/a", []byte("old"), 0o600), os.MkdirAll(dir+"/folder", 0o755), os.Symlink("a", dir+"/link"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := fetchAll(t, f, Plan{Dir: dir})
	if !errors.Is(err, ErrThere) || got.Fetched != 1 || !strings.HasPrefix(err.Error(), "a and 2 other files in "+dir) {
		t.Errorf("%+v, %v", got, err)
	}
	if found := tree(t, dir); !slices.Equal(found, []string{"a=old", "z=new"}) {
		t.Errorf("%q", found)
	}
	got, err = fetchAll(t, f, Plan{Dir: dir, Force: true})
	if !errors.Is(err, ErrThere) || got.Fetched != 1 || got.Kept != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if found := tree(t, dir); !slices.Equal(found, []string{"a=new", "z=new"}) {
		t.Errorf("%q", found)
	}
}

// TestKilledFetchLeavesNothing: what one that was killed has left goes with the next, in each folder that gets files;
// what another one writes at the moment, and what only looks like it, stays.
func TestKilledFetchLeavesNothing(t *testing.T) {
	b, f := newBroker(t)
	b.has(0, "a", "zero")
	b.has(0, "deep/b", "one")
	dir := t.TempDir()
	if _, err := fetchAll(t, f, Plan{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	put := func(name string) *os.File {
		t.Helper()
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	left, written := besidePrefix+strings.Repeat("A", 26), besidePrefix+strings.Repeat("B", 26)
	put(left)
	put("deep/" + left)
	if err := lockFile(put(written)); err != nil {
		t.Fatal(err)
	}
	put(besidePrefix + "mine")
	if err := os.Symlink("a", filepath.Join(dir, besidePrefix+strings.Repeat("C", 26))); err != nil {
		t.Fatal(err)
	}
	if got, err := fetchAll(t, f, Plan{Dir: dir}); err != nil || got.Kept != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	want := []string{written + "=", besidePrefix + "mine=", "a=zero", "deep/b=one"}
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, besidePrefix+strings.Repeat("C", 26))); err != nil {
		t.Error(err)
	}
}

// TestFetchesSideBySide: two into one folder do not take each other's files for leftovers.
func TestFetchesSideBySide(t *testing.T) {
	b, f := newBroker(t)
	for i := range 60 {
		b.has(0, fmt.Sprintf("d%d/f%d", i%3, i), strings.Repeat("x", i))
	}
	dir := t.TempDir()
	var side sync.WaitGroup
	for range 4 {
		side.Go(func() {
			if _, err := fetchAll(t, f, Plan{Dir: dir, Force: true}); err != nil {
				t.Error(err)
			}
		})
	}
	side.Wait()
	if got := tree(t, dir); len(got) != 60 {
		t.Errorf("%q", got)
	}
}

// TestNothingOutside: neither a path nor a link that is there leads out of the folder.
func TestNothingOutside(t *testing.T) {
	for _, path := range []string{"../x", "/etc/x", "a/../../x", "", "a\x00"} {
		b, f := newBroker(t)
		b.has(0, path, "x")
		if list, err := f.List(t.Context(), "a.1", nil); !errors.Is(err, files.ErrPath) {
			t.Errorf("%q: %+v, %v", path, list, err)
		}
	}
	b, f := newBroker(t)
	b.has(0, "out/x", "x")
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, dir+"/out"); err != nil {
		t.Fatal(err)
	}
	if got, err := fetchAll(t, f, Plan{Dir: dir}); err == nil || got.Fetched != 0 || len(tree(t, outside)) != 0 {
		t.Errorf("%+v, %v, outside %q", got, err, tree(t, outside))
	}
}

// TestBytesAreChecked: a file that comes short, long or other is asked for again; if it stays so, it gets no name.
func TestBytesAreChecked(t *testing.T) {
	for name, sent := range map[string]string{"short": "conten", "long": "content!", "other": "CONTENT"} {
		b, f := newBroker(t)
		b.has(0, "x", "content")
		b.contents["0/x"] = sent
		b.trouble = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/x") && b.asked == 3 {
				b.contents["0/x"] = "content"
			}
			return false
		}
		dir := t.TempDir()
		if got, err := fetchAll(t, f, Plan{Dir: dir}); err != nil || got.Fetched != 1 || b.asked != 4 {
			t.Errorf("%s: %+v after %d, %v", name, got, b.asked, err)
		}
		dir, b.trouble, b.contents["0/x"] = t.TempDir(), nil, sent
		_, err := fetchAll(t, f, Plan{Dir: dir})
		if entries, _ := os.ReadDir(dir); !errors.Is(err, client.ErrBrokeOff) || len(entries) != 0 {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
	}
}

// TestCutsAreOvercome: an answer that is cut off is asked for again.
func TestCutsAreOvercome(t *testing.T) {
	b, f := newBroker(t)
	content := strings.Repeat("x", 1<<20)
	b.has(0, "x", content)
	cut := 0
	b.trouble = func(w http.ResponseWriter, r *http.Request) bool {
		if cut++; cut > 2 || !strings.HasSuffix(r.URL.Path, "/x") {
			return false
		}
		_, _ = io.WriteString(w, content[:100_000])
		panic(http.ErrAbortHandler)
	}
	dir := t.TempDir()
	if got, err := fetchAll(t, f, Plan{Dir: dir}); err != nil || got.Bytes != 1<<20 {
		t.Errorf("%+v, %v", got, err)
	}
	if found := tree(t, dir); len(found) != 1 {
		t.Errorf("%d files", len(found))
	}
}

// TestBadLists: two files of one name, and a list without an end, are refused.
func TestBadLists(t *testing.T) {
	b, f := newBroker(t)
	b.has(0, "x", "0")
	b.has(1, "x", "1")
	if _, err := fetchAll(t, f, Plan{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "two files x") {
		t.Error(err)
	}
	b.trouble = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, `{"items":[],"next":"again"}`)
		return true
	}
	if _, err := f.List(t.Context(), "a.1", nil); !errors.Is(err, client.ErrBadAnswer) {
		t.Error(err)
	}
	b.trouble = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusGone)
		fmt.Fprintf(w, `{"type":"%sresults-gone","title":"Gone","status":410}`, wire.ProblemPrefix)
		return true
	}
	var p *wire.Problem
	if _, err := f.List(t.Context(), "a.1", nil); !errors.As(err, &p) || p.Status != http.StatusGone {
		t.Error(err)
	}
}
