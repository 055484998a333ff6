// Package typed reads what guides show to type, for tests that type it, and compares
// what comes with what the guides show.
package typed

import (
	"regexp"
	"strings"
)

// Block is a file of a guide, or commands with their output.
type Block struct {
	Line int
	File string // its name; "" = commands
	Body string
}

// Command is what a guide shows to type, and what it shows that comes.
type Command struct{ Line, Want string }

// Blocks returns the files of a guide (file=NAME in the line that opens them) and the blocks that are opened by info,
// in their order; nothing if there are no such blocks.
func Blocks(text, info string) (blocks []Block) {
	var open *Block
	fenced, found := false, false
	for i, line := range strings.Split(text, "\n") {
		opens, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && fenced:
			if open != nil {
				blocks = append(blocks, *open)
			}
			open, fenced = nil, false
		case fence:
			fenced = true
			_, file, isFile := strings.Cut(opens, " file=")
			if isFile || opens == info {
				open = &Block{Line: i + 2, File: file}
			}
			found = found || opens == info
		case open != nil:
			open.Body += line + "\n"
		}
	}
	if !found {
		return nil
	}
	return blocks
}

// Commands returns those of a block.
func (b Block) Commands() (commands []Command) {
	for _, part := range strings.Split("\n"+b.Body, "\n$ ")[1:] {
		command, want, _ := strings.Cut(part, "\n")
		for strings.HasSuffix(command, "\\") {
			var more string
			more, want, _ = strings.Cut(want, "\n")
			command += "\n" + more
		}
		commands = append(commands, Command{command, strings.TrimSpace(want)})
	}
	return commands
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

// Fits reports whether what came has the form that the guide shows: a line "…" stands for
// any lines, "…" in a line for the rest of a word or line.
func (c Command) Fits(got string) bool {
	var lines []string
	for _, line := range strings.Split(mask(c.Want), "\n") {
		if line == "…" {
			lines = append(lines, `(?:.*\n)*?`)
			continue
		}
		lines = append(lines, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " ")), "…", ".*")+` *\n`)
	}
	return regexp.MustCompile(`^` + strings.Join(lines, "") + `$`).MatchString(mask(got) + "\n")
}
