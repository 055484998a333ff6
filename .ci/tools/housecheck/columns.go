package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxColumns is how wide a line of Go may be; a tab counts as four columns.
const maxColumns = 120

// columnFaults finds lines of Go that are too wide. What stands in string literals does
// not count, struct tags included: the formatter cannot break it. Comments with a link,
// drawings in comments and directives do not count either.
func columnFaults(name string, data []byte) []string {
	lines := strings.Split(string(withoutLiterals(data)), "\n")
	var faults []string
	for i, text := range lines {
		text = strings.ReplaceAll(text, "\t", "    ")
		width := utf8.RuneCountInString(text)
		if width <= maxColumns || exempt.MatchString(text) {
			continue
		}
		faults = append(faults, fmt.Sprintf("%s:%d: %d columns: break the line (at most %d)", name, i+1, width, maxColumns))
	}
	return faults
}

// exempt is what cannot be broken: links, directives, and preformatted comments.
var exempt = regexp.MustCompile(`://|^//go:|//nolint|^ *// {2,}`)

// withoutLiterals returns a Go file whose string literals are empty; lines stay lines.
func withoutLiterals(data []byte) []byte {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(data))
	var s scanner.Scanner
	s.Init(file, data, nil, 0)
	var out []byte
	end := 0 // of what was copied
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return append(out, data[end:]...)
		}
		if tok != token.STRING {
			continue
		}
		at := file.Offset(pos)
		out = append(append(out, data[end:at]...), strings.Repeat("\n", strings.Count(lit, "\n"))...)
		end = at + rawLength(data[at:], lit)
	}
}

// rawLength returns how many bytes a literal takes: the scanner drops carriage returns.
func rawLength(data []byte, lit string) int {
	n := len(lit)
	for strings.Count(string(data[:n]), "\r") > n-len(lit) {
		n++
	}
	return n
}
