package jobcmd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// writes is a broker with a job whose tasks wrote a text to one stream.
func writes(t *testing.T, stream, text string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/tasks"):
			_, _ = io.WriteString(w, `{"items":[{"index":3,"state":"failed","attempt":1}],"next":""}`)
		case r.URL.Query().Get("stream") == stream:
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestPrefixOfASingleTask: --prefix did nothing for a single task.
func TestPrefixOfASingleTask(t *testing.T) {
	addr := writes(t, "stdout", "a\n\nb")
	for args, want := range map[string]string{
		"site-1.1/3 --prefix":             "site-1.1/3: a\nsite-1.1/3: \nsite-1.1/3: b\n",
		"site-1.1 --prefix --follow":      "site-1.1/0: a\nsite-1.1/0: \nsite-1.1/0: b\n",
		"site-1.1/3 --follow":             "a\n\nb",
		"site-1.1/3 --prefix=false":       "a\n\nb",
		"site-1.1/3 --stream stdout":      "a\n\nb",
		"site-1.1 --task 3 --prefix":      "site-1.1/3: a\nsite-1.1/3: \nsite-1.1/3: b\n",
		"site-1.1/3 --attempt 1 --prefix": "site-1.1/3: a\nsite-1.1/3: \nsite-1.1/3: b\n",
	} {
		if code, out, errs := runCLI(t, "", append([]string{"--addr", addr, "logs"}, strings.Fields(args)...)...); code != 0 ||
			out != want || errs != "" {
			t.Errorf("%s: exit %d, %q, want %q\n%s", args, code, out, want, errs)
		}
	}
}

// TestNothingOnStdoutPointsToStderr: of a task that wrote to stderr only, logs printed
// nothing and said nothing.
func TestNothingOnStdoutPointsToStderr(t *testing.T) {
	addr := writes(t, "stderr", "boom\n")
	code, out, errs := runCLI(t, "", "--addr", addr, "logs", "site-1.1/3")
	if code != 0 || out != "" || errs != "site-1.1/3 wrote nothing to stdout; see cloudshare logs site-1.1/3 --stream stderr\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if code, out, errs := runCLI(t, "", "--addr", addr, "logs", "site-1.1/3", "--stream", "stderr"); code != 0 || out != "boom\n" || errs != "" {
		t.Errorf("stderr: exit %d, %q, %q", code, out, errs)
	}
	if code, out, errs := runCLI(t, "", "--addr", addr, "logs", "site-1.1/3", "--stream", "stdout"); code != 0 || out+errs != "" {
		t.Errorf("stdout by name: exit %d, %q, %q", code, out, errs)
	}
}
