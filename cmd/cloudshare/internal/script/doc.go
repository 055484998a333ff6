// Package script reads the directives in a script that is to be a job: lines such as
//
//	#!/bin/sh
//	#CLOUDSHARE --cpu 4 --memory 2Gi
//	#CLOUDSHARE --label 'project=two words'
//
// between its first line and its first command. Their words are a shell's, but nothing is evaluated: what a shell would
// replace, or take for more than a word, is refused. It knows no flags, no files and no broker.
package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Marker begins a directive.
const Marker = "#CLOUDSHARE"

const (
	// maxHeader bounds the lines before the first command, in bytes, and maxDirectives how many directives they hold.
	maxHeader     = 64 << 10
	maxDirectives = 256
)

// Directive is the words of one line.
type Directive struct {
	Line  int // from 1
	Words []string
}

// Script is what its header says.
type Script struct {
	Directives []Directive
	// Late is the first line with a directive that counts for nothing, behind the first command; 0 = there is none.
	Late int
	// Near is the first line that seems meant as a directive, and is none as it is written; 0 = there is none.
	Near int
}

// LineError says what is wrong with a line of a script.
type LineError struct {
	Line   int
	Reason string
}

// Error implements error: the file's name is who reads it to say.
func (e *LineError) Error() string { return fmt.Sprintf("%d: %s", e.Line, e.Reason) }

// Parse reads a script. Every error is a *LineError.
func Parse(text []byte) (Script, error) {
	var s Script
	n, size, header := 0, 0, true
	for line := range strings.Lines(string(text)) {
		n++
		size += len(line)
		line = strings.TrimSuffix(line, "\n")
		if header = header && inHeader(line, n); !header {
			if s.Late == 0 && isDirective(line) {
				s.Late = n
			}
			continue
		}
		if size > maxHeader {
			return s, &LineError{n, fmt.Sprintf("there are more than %d bytes before the first command", maxHeader)}
		}
		if err := s.read(n, line); err != nil {
			return s, err
		}
	}
	if n == 0 {
		return s, &LineError{1, "the script is empty"}
	}
	return s, nil
}

// inHeader reports whether a line may stand before the first command.
func inHeader(line string, n int) bool {
	line = strings.TrimLeft(line, " \t")
	return n == 1 || line == "" || line == "\r" || line[0] == '#'
}

// isDirective reports whether a line is one: the marker alone, or with a space behind it.
func isDirective(line string) bool {
	rest, ok := strings.CutPrefix(line, Marker)
	return ok && (rest == "" || strings.ContainsRune(" \t\r", rune(rest[0])))
}

// isNear reports whether a line is a directive but for spaces, or the case of the marker: flags stand behind it.
func isNear(line string) bool {
	rest, comment := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#")
	rest = strings.TrimLeft(rest, " \t")
	word := Marker[1:]
	return comment && len(rest) > len(word) && strings.EqualFold(rest[:len(word)], word) &&
		strings.HasPrefix(strings.TrimLeft(rest[len(word):], " \t:"), "-")
}

// read reads a line of the header.
func (s *Script) read(n int, line string) error {
	wrong := func(reason string) error { return &LineError{n, reason} }
	switch {
	case n == 1 && !strings.HasPrefix(line, "#!"):
		return wrong("does not begin with #!, so it does not say which program runs it: begin it with a line such as #!/bin/sh")
	case strings.HasSuffix(line, "\r"):
		return wrong("ends with CR LF, as Windows writes lines: the program that runs the script would not be found; " +
			"convert it, as by dos2unix")
	case n == 1 && strings.Trim(line[2:], " \t") == "":
		return wrong("names no program behind #!: begin the script with a line such as #!/bin/sh")
	case n == 1 && strings.IndexByte(line, 0) >= 0:
		return wrong("holds a NUL byte: this is no script")
	case n == 1:
		return nil
	case !isDirective(line):
		if s.Near == 0 && isNear(line) {
			s.Near = n
		}
		return nil
	case !utf8.ValidString(line):
		return wrong("is not UTF-8")
	case strings.IndexFunc(line, hidden) >= 0:
		return wrong("holds control or formatting characters: a directive is read by people, too")
	case len(s.Directives) == maxDirectives:
		return wrong(fmt.Sprintf("is one directive too many: at most %d", maxDirectives))
	}
	words, err := Split(line[len(Marker):])
	if err != nil {
		return wrong(err.Error())
	}
	if len(words) > 0 {
		s.Directives = append(s.Directives, Directive{n, words})
	}
	return nil
}

func hidden(r rune) bool { return r != '\t' && jobspec.Unprintable(r) }
