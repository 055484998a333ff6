package kube

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// TestCutOutput: of an output that a node does not tell to its end what came is kept, and ends
// with a line that says so; of several tries it is the longest.
func TestCutOutput(t *testing.T) {
	const line = "\n[cloudshare: output cut at "
	for name, c := range map[string]struct {
		tries []string // what comes until the connection breaks; "…" = then nothing more does, "." = it is whole
		gone  bool     // the pod, in the end
		want  string   // a line follows if it ends in "…"
	}{
		"breaks":              {tries: []string{"head"}, want: "head…"},
		"stalls":              {tries: []string{"head…"}, want: "head…"},
		"shorter then":        {tries: []string{"head and body", "head"}, want: "head and body…"},
		"whole then":          {tries: []string{"head and", "head and body."}, want: "head and body."},
		"then removed":        {tries: []string{"head and body"}, gone: true, want: "head and body…"},
		"removed before":      {gone: true, want: "none"},
		"nothing":             {tries: []string{""}, want: "none"},
		"nothing, and stalls": {tries: []string{"…"}, want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, left := logged(t), c.tries
			h.answer = func(w http.ResponseWriter, r *http.Request) {
				text := left[0]
				left = left[1:]
				broken(w, r, text)
			}
			w, pod := h.attempt(t, 0), &podView{name: "p", podState: &podState{}}
			out := [2]int64{}
			for len(left) > 0 {
				again := time.Duration(0)
				w.patience = time.Now().Add(time.Minute)
				if len(left) == 1 && !c.gone {
					w.patience = time.Now().Add(-time.Minute)
				}
				if out, again = h.output.keep(t.Context(), w, pod, false); (again > 0) != (len(left) > 0 || c.gone) {
					t.Fatalf("got %s with %d tries left", again, len(left))
				}
			}
			if c.gone {
				out, _ = h.output.keep(t.Context(), w, pod, true)
			}
			if err := h.finisher.endAttempt(w, executor.Result{Started: monday}, out); err != nil {
				t.Fatal(err)
			}
			rc := &reader{o: h.output, w: w, ctx: t.Context(), cancel: func() {}}
			err := rc.first()
			if c.want == "none" {
				if err == nil {
					t.Error("there is an output")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer rc.Close()
			b, err := io.ReadAll(rc)
			got, said, cut := strings.Cut(string(b), line)
			if want := strings.TrimRight(c.want, "…."); err != nil || got != want ||
				cut != strings.HasSuffix(c.want, "…") || cut && !strings.HasSuffix(said, "]\n") {
				t.Errorf("got %v, %q, want %q", err, b, c.want)
			}
		})
	}
}

// TestCutAgain: a broker that was killed before it had written the end of a task whose output it had cut cuts it once
// more. There is one line then, and it counts what the task has written.
func TestCutAgain(t *testing.T) {
	for name, c := range map[string]struct {
		next []string // what comes in the broker's next life
		want string
	}{
		"removed":         {want: "head and body…"},
		"as much":         {next: []string{"head and body"}, want: "head and body…"},
		"less":            {next: []string{"head"}, want: "head and body…"},
		"more":            {next: []string{"head and body and more"}, want: "head and body and more…"},
		"whole":           {next: []string{"head and body."}, want: "head and body"},
		"more, then less": {next: []string{"head and body and more", "head"}, want: "head and body and more…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, left := logged(t), append([]string{"head and body"}, c.next...)
			h.output.logs.merged.Store(true)
			h.answer = func(w http.ResponseWriter, r *http.Request) {
				text := left[0]
				left = left[1:]
				broken(w, r, text)
			}
			w, pod := h.attempt(t, 0), &podView{name: "p", podState: &podState{}}
			w.patience = time.Now().Add(-time.Minute)
			var out [2]int64
			for len(left) > 0 {
				out, _ = h.output.keep(t.Context(), w, pod, false)
			}
			if c.next == nil {
				out, _ = h.output.keep(t.Context(), w, pod, true)
			}
			b, err := os.ReadFile(h.output.file(w, 0))
			want, cut := strings.CutSuffix(c.want, "…")
			said := ""
			if cut {
				said = fmt.Sprintf("\n[cloudshare: output cut at %d bytes: ", len(want))
			}
			if err != nil || !strings.HasPrefix(string(b), want+said) || out[0] != int64(len(b)) ||
				strings.Count(string(b), "cloudshare") != strings.Count(said, "cloudshare") {
				t.Errorf("got %v, %d bytes: %q", err, out[0], b)
			}
		})
	}
}

// TestOnlyOurCutLineIsRemoved: what a task writes stays.
func TestOnlyOurCutLineIsRemoved(t *testing.T) {
	long := strings.Repeat("x", 3*maxCutLine)
	for text, want := range map[string]string{
		"":                               "",
		"a" + cutLine(1, "why"):          "a",
		cutLine(0, "why"):                "",
		long + cutLine(3*maxCutLine, ""): long,
		"a" + cutLine(2, "why"):          "a" + cutLine(2, "why"),
		"a" + cutLine(1, "why") + "b\n":  "a" + cutLine(1, "why") + "b\n",
		"a" + cutLine(1, "why\nnot"):     "a" + cutLine(1, "why\nnot"),
	} {
		path := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := removeCutLine(path)
		if b, e := os.ReadFile(path); err != nil || e != nil || string(b) != want {
			t.Errorf("%q: got %v, %v, %q", text, err, e, b)
		}
	}
}

// loggedHandler is one whose API server's words on logs a test gives.
type loggedHandler struct {
	*Handler
	answer http.HandlerFunc
}

func logged(t *testing.T) *loggedHandler {
	t.Helper()
	l := &loggedHandler{}
	l.Handler = servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") {
			l.answer(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"minor":"30"}`)
	})
	l.cfg.CallTimeout = 300 * time.Millisecond
	return l
}

// broken writes a text, and then breaks the connection, or has it stall.
func broken(w http.ResponseWriter, r *http.Request, text string) {
	body, whole := strings.CutSuffix(text, ".")
	body, stalls := strings.CutSuffix(body, "…")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, body)
	w.(http.Flusher).Flush()
	if stalls {
		<-r.Context().Done()
	}
	if !whole {
		panic(http.ErrAbortHandler)
	}
}
