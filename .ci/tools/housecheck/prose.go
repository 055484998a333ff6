package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// written are folders whose pages a program writes, or tests compare byte for byte.
var written = regexp.MustCompile(`(^|/)((testdata|report)/|(CONFIG|METRICS|guide/api)\.md$)`)

// unbreakable is a line of a page that is no prose: a table, a heading, HTML, a link's target.
var unbreakable = regexp.MustCompile(`^\s*(\||#|<|\[[^\]]*\]:)`)

// proseFaults finds lines of a page that are too wide. Tables, headings and listings do not
// count, and neither does what has no space to break at.
func proseFaults(name string, data []byte) []string {
	if filepath.Ext(name) != ".md" || written.MatchString(name) {
		return nil
	}
	var faults []string
	listing := false
	for i, text := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			listing = !listing
			continue
		}
		width := utf8.RuneCountInString(text)
		if listing || width <= maxColumns || unbreakable.MatchString(text) || !canBreak(text) {
			continue
		}
		faults = append(faults, fmt.Sprintf("%s:%d: %d columns: break the line (at most %d)", name, i+1, width, maxColumns))
	}
	return faults
}

// canBreak reports whether there is a space within the columns, behind the line's indentation.
func canBreak(text string) bool {
	head := []rune(strings.TrimLeft(text, " -*"))
	return strings.ContainsRune(string(head[:min(len(head), maxColumns)]), ' ')
}
