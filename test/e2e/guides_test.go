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
)

// TestGuides types what the guides say, in their order, in a federation like
// the one that they ask for, and compares what comes with what they show. Run
// are the blocks marked "console run"; "file=NAME" blocks are the files in use.
func TestGuides(t *testing.T) {
	paths, err := filepath.Glob("../../cmd/cloudshare/guide/*.md")
	must(t, err)
	typed := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		blocks := guideBlocks(string(text))
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := reader{fed: start(t, 3, 2), dir: t.TempDir()}
			for _, b := range blocks {
				typed += r.read(t, b)
			}
		})
	}
	if typed < 20 {
		t.Errorf("only %d commands were found in %v", typed, paths)
	}
}

// guideBlock is a file of a guide, or commands with their output.
type guideBlock struct {
	line int
	file string
	body string
}

func guideBlocks(text string) (blocks []guideBlock) {
	var open *guideBlock
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && fenced:
			if open != nil {
				blocks = append(blocks, *open)
			}
			open, fenced = nil, false
		case fence:
			fenced = true
			_, file, isFile := strings.Cut(info, " file=")
			if isFile || info == "console run" {
				open = &guideBlock{line: i + 2, file: file}
			}
		case open != nil:
			open.body += line + "\n"
		}
	}
	return blocks
}

// reader is somebody who types what the guide says.
type reader struct {
	fed *testbed.Federation
	dir string
}

// read does what a block says and returns the number of its commands.
func (r reader) read(t *testing.T, b guideBlock) (commands int) {
	t.Helper()
	if b.file != "" {
		must(t, os.WriteFile(filepath.Join(r.dir, b.file), []byte(b.body), 0o600))
		return 0
	}
	for _, part := range strings.Split("\n"+b.body, "\n$ ")[1:] {
		command, want, _ := strings.Cut(part, "\n")
		for strings.HasSuffix(command, "\\") {
			var more string
			more, want, _ = strings.Cut(want, "\n")
			command += "\n" + more
		}
		r.compare(t, b.line, command, strings.TrimSpace(want))
		commands++
	}
	return commands
}

// Reading may be done again until what was just asked for has happened.
var onlyReads = regexp.MustCompile(`^cloudshare (sites|status|job|jobs|tasks|logs|events|queue|ledger)\b[^;&|]*$`)

func (r reader) compare(t *testing.T, line int, command, want string) {
	t.Helper()
	try := func() error {
		got := r.run(t.Context(), command)
		if !shape(want).MatchString(mask(got) + "\n") {
			return fmt.Errorf("the block at line %d: $ %s\n%s\nthe guide has\n%s", line, command, got, want)
		}
		return nil
	}
	if onlyReads.MatchString(command) {
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

var (
	number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	blanks = regexp.MustCompile(`[ \t]+`)
)

// mask takes out what differs from run to run: numbers, and with them dates,
// sites and the widths of columns.
func mask(text string) string {
	return number.ReplaceAllString(blanks.ReplaceAllString(text, " "), "0")
}

// shape matches the masked output that a guide shows: a line "…" stands for
// any lines, "…" in a line for the rest of a word or line.
func shape(want string) *regexp.Regexp {
	var lines []string
	for _, line := range strings.Split(mask(want), "\n") {
		if line == "…" {
			lines = append(lines, `(?:.*\n)*?`)
			continue
		}
		lines = append(lines, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " ")), "…", ".*")+` *\n`)
	}
	return regexp.MustCompile(`^` + strings.Join(lines, "") + `$`)
}
