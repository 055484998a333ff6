package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guideLogLine is a line of a broker's log: level, message, fields.
var (
	guideLogLine = regexp.MustCompile(`(?m)^\s*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (?:INF|WRN|ERR) (.*?)((?: [a-z_]+=(?:"[^"]*"|\S*))+)$`)
	logField     = regexp.MustCompile(` ([a-z_]+)=(?:"[^"]*"|\S*)`)
)

// TestGuidesShowLogLines: what guides show of a log, brokers write. The guide had "lead=" and
// "the last life" when they wrote "leader=".
func TestGuidesShowLogLines(t *testing.T) {
	code := sourceCode(t)
	lines := 0
	for _, topic := range guideTopics {
		doc, err := guides.ReadFile("guide/" + topic.name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range guideLogLine.FindAllStringSubmatch(string(doc), -1) {
			lines++
			if !strings.Contains(code, `"`+m[1]+`"`) {
				t.Errorf("guide %s: nobody logs %q", topic.name, m[1])
			}
			for _, field := range logField.FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(code, `"`+field[1]+`"`) {
					t.Errorf("guide %s: no log has a field %s: %s", topic.name, field[1], m[0])
				}
			}
		}
	}
	if lines < 5 {
		t.Errorf("only %d lines were found: is the search broken?", lines)
	}
}

// sourceCode is what makes brokers, without tests.
func sourceCode(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"../../node", "../../membership", "internal/daemon"} {
		if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
