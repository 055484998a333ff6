package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/typed"
)

// TestGuides types what the guides say, in their order, in a federation like
// the one that they ask for, and compares what comes with what they show. Run
// are the blocks marked "console run"; "file=NAME" blocks are the files in use.
func TestGuides(t *testing.T) {
	paths, err := filepath.Glob("../../cmd/cloudshare/guide/*.md")
	must(t, err)
	commands := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		blocks := typed.Blocks(string(text), "console run")
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := reader{fed: start(t, 3, 2), dir: t.TempDir()}
			for _, b := range blocks {
				commands += r.read(t, b)
			}
		})
	}
	if commands < 20 {
		t.Errorf("only %d commands were found in %v", commands, paths)
	}
}

// reader is somebody who types what the guide says.
type reader struct {
	fed *testbed.Federation
	dir string
}

// read does what a block says and returns the number of its commands.
func (r reader) read(t *testing.T, b typed.Block) int {
	t.Helper()
	if b.File != "" {
		must(t, os.WriteFile(filepath.Join(r.dir, b.File), []byte(b.Body), 0o600))
		return 0
	}
	commands := b.Commands()
	for _, c := range commands {
		r.compare(t, b.Line, c)
	}
	return len(commands)
}

// Reading may be done again until what was just asked for has happened.
var onlyReads = regexp.MustCompile(`^cloudshare (sites|status|job|jobs|tasks|logs|events|queue|ledger)\b[^;&|]*$`)

func (r reader) compare(t *testing.T, line int, c typed.Command) {
	t.Helper()
	try := func() error {
		if got := r.run(t.Context(), c.Line); !c.Fits(got) {
			return fmt.Errorf("the block at line %d: $ %s\n%s\nthe guide has\n%s", line, c.Line, got, c.Want)
		}
		return nil
	}
	if onlyReads.MatchString(c.Line) {
		await(t, "what the guide shows", try)
		return
	}
	if err := try(); err != nil {
		t.Error(err)
	}
}

// run types a command; the guide's addresses and folder become the federation's.
func (r reader) run(ctx context.Context, command string) string {
	for i, s := range r.fed.Sites {
		command = strings.ReplaceAll(command, fmt.Sprintf("http://127.0.0.1:770%d", i), s.URL.String())
	}
	command = strings.ReplaceAll(command, "/tmp/fed/", filepath.Dir(r.fed.Sites[0].Dir)+"/")
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), r.fed.Sites[0].Env()...),
		"PATH="+filepath.Dir(cloudshare)+":"+os.Getenv("PATH"), "CLOUDSHARE_ADDR="+r.fed.Sites[0].URL.String())
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		text += "\n" + err.Error()
	}
	return text
}
