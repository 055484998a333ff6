package jobcmd

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// TestJobIsQuoted: what `job` shows of a command, its environment and its labels is one
// line each, and bash takes each back as it was.
func TestJobIsQuoted(t *testing.T) {
	words := []string{
		"sh", "-c", "echo \"$HOME\" 'it''s' `id`; exit 1", "", " a  b ", "two\nlines\ttab", "é 漢 🙂", "~root", "-n", "=ls", "A=1", "*", "\\", "!x", "#y", "\u202e",
	}
	job := wire.Job{User: "alice"}
	job.Spec = wire.Spec{Command: words, Env: map[string]string{"B": "$x y", "A": "1"}, Labels: map[string]string{"k": "", "a.b": "x-1"}}
	var out strings.Builder
	a := &cli.App{Streams: cli.Streams{Out: &out}, Format: "table"}
	if err := showJob(a, job); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, text, _ := strings.Cut(strings.TrimRight(line, "\n"), "  ")
		rows[name] = strings.TrimLeft(text, " ")
	}
	if rows["user"] != "alice" {
		t.Errorf("the job is of %q", rows["user"])
	}
	for name, want := range map[string][]string{
		"command": words, "environment": {"A=1", "B=$x y"}, "labels": {"a.b=x-1", "k="},
	} {
		got, err := exec.Command("bash", "-c", `printf '%s\0' `+rows[name]).Output()
		if err != nil || string(got) != strings.Join(want, "\x00")+"\x00" {
			t.Errorf("%s: %s came back as %q, %v", name, rows[name], got, err)
		}
	}
}
