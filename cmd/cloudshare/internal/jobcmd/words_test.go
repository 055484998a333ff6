package jobcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// echoBroker accepts a job, and shows the last one that it got.
func echoBroker(t *testing.T) (addr string) {
	t.Helper()
	var job wire.Job
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			spec, err := jobspec.ParseSpec(body)
			if err != nil {
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = fmt.Fprintf(w, `{"type":"urn:cloudshare:problem:invalid-job","title":%q,"status":422}`, err.Error())
				return
			}
			job = wire.Job{ID: "a.1", State: "queued", Spec: wire.Spec{Command: spec.Command}}
			w.WriteHeader(http.StatusAccepted)
		}
		_ = json.NewEncoder(w).Encode(job)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// pasted returns the words that bash reads from the command which `job` shows.
func pasted(t *testing.T, addr string) []string {
	t.Helper()
	_, out, errs := runCLI(t, "", "job", "a.1", "--addr", addr)
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(line, "command "); ok {
			words, err := exec.Command("bash", "-c", `printf '%s\0' `+text).Output()
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
		}
	}
	t.Fatalf("no command is shown: %s%s", out, errs)
	return nil
}

// TestWordsComeBackThroughTheBroker: whatever words a command has, typed behind "--" or
// written into a file, what `job` shows of it can be pasted, and is the same words.
func TestWordsComeBackThroughTheBroker(t *testing.T) {
	addr := echoBroker(t)
	odd := []string{
		" ", "'", "\"", "\n", "\t", "$", "$HOME", "`id`", "$(id)", "\\", "-", "--", "-o", "--addr", "=", "!", "#", "*", "{a,b}", ";", "&", "|", "<",
		"~", "\x01", "\u200b", "\u2028", "\uFFFD", "é", "漢", "a", "0", "null", "true", "%s", ": ", "- ", "...", "---",
	}
	word := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(odd), 0, 5).Draw(rt, "parts"), "")
	})
	rapid.Check(t, func(rt *rapid.T) {
		words := append([]string{"x" + word.Draw(rt, "program")}, rapid.SliceOfN(word, 0, 5).Draw(rt, "words")...)
		file, err := json.Marshal(map[string][]string{"command": words})
		if err != nil {
			rt.Fatal(err)
		}
		for stdin, line := range map[string][]string{
			"":                        append([]string{"submit", "--addr", addr, "--"}, words...),
			string(file):              {"submit", "--addr", addr, "-f", "-"},
			"# YAML\n" + string(file): {"submit", "--addr", addr, "-f", "-"},
		} {
			if code, _, errs := runCLI(t, stdin, line...); code != cli.ExitOK {
				rt.Fatalf("%q: exit %d %s", words, code, errs)
			}
			if got := pasted(t, addr); !slices.Equal(got, words) {
				rt.Fatalf("%q %s came back as %q", words, stdin, got)
			}
		}
	})
}

// TestBytesThatAreNoText: a word that is no UTF-8 went to the broker with other characters
// in its place, and another command ran.
func TestBytesThatAreNoText(t *testing.T) {
	addr := echoBroker(t)
	for _, c := range []struct {
		stdin string
		line  []string
	}{
		{"", []string{"--", "printf", "\xff"}},
		{"", []string{"--env", "A=\xc3", "--", "x"}},
		{"", []string{"--name", "\xff", "--", "x"}},
		{"command: [x, !!binary \"/w==\"]\n", []string{"-f", "-"}},
		{"{\"command\":[\"\xff\"]}", []string{"-f", "-"}},
	} {
		code, _, errs := runCLI(t, c.stdin, append([]string{"submit", "--addr", addr}, c.line...)...)
		if code != cli.ExitUsage || !strings.Contains(errs, "UTF-8") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q %q: exit %d %s", c.stdin, c.line, code, errs)
		}
	}
}
