package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// TestGuide: a guide comes as it is.
func TestGuide(t *testing.T) {
	for _, topic := range guideTopics {
		code, out, errs := runCLI(t, "", "guide", topic.name)
		if code != cli.ExitOK || errs != "" || !strings.HasPrefix(out, "# ") {
			t.Errorf("guide %s: exit %d, %.40q, %s", topic.name, code, out, errs)
		}
	}
	_, user, _ := runCLI(t, "", "guide")
	if !strings.HasPrefix(user, "# User guide") {
		t.Errorf("guide: %.40q", user)
	}
	for _, wrong := range [][]string{{"guide", "nothing"}, {"guide", "user", "api"}} {
		if code, out, errs := runCLI(t, "", wrong...); code != cli.ExitUsage || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q", wrong, code, out, errs)
		}
	}
}

// TestPager: on a terminal the text goes through $PAGER.
func TestPager(t *testing.T) {
	var out strings.Builder
	for pager, want := range map[string]string{"tr a-z A-Z": "TEXT", "none-such-pager": "text", " ": "text"} {
		out.Reset()
		a := &cli.App{Streams: cli.Streams{Out: &out, Err: &out}, Getenv: func(string) string { return pager }}
		if err := showPage(a, "text"); err != nil || out.String() != want {
			t.Errorf("PAGER=%s: %q, %v", pager, out.String(), err)
		}
	}
	a := &cli.App{Streams: cli.Streams{Out: &out, Err: &out}, Getenv: func(string) string { return "false" }}
	if err := showPage(a, "text"); err == nil {
		t.Error("a pager that fails is no error")
	}
}

var relativeLink = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)

// TestDocumentsLink: what a document points to is there.
func TestDocumentsLink(t *testing.T) {
	for _, path := range documents(t) {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range relativeLink.FindAllStringSubmatch(string(doc), -1) {
			target := filepath.Join(filepath.Dir(path), m[1])
			text, err := os.ReadFile(target)
			if err != nil {
				if _, err = os.Stat(target); err != nil {
					t.Errorf("%s: %s: %v", path, m[0], err)
				}
				continue
			}
			if m[2] != "" && !hasHeading(string(text), m[2][1:]) {
				t.Errorf("%s: %s: no such heading", path, m[0])
			}
		}
	}
}

// hasHeading looks for a heading whose anchor this is.
func hasHeading(doc, anchor string) bool {
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.TrimSpace(strings.TrimLeft(line, "#"))
		made := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(title))
		if made == anchor {
			return true
		}
	}
	return false
}
