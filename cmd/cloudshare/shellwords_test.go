package main

import (
	"regexp"
	"strings"
)

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// shellCommands splits a line as a shell would, as far as documents need it:
// quotes, comments, pipes, lists, redirections and $(…), whose commands come
// too. Assignments in front are left out.
func shellCommands(line string) (commands [][]string) {
	l := shellLexer{rest: line}
	for l.rest != "" {
		l.step()
	}
	l.end()
	return append(commands, l.commands...)
}

type shellLexer struct {
	rest     string
	word     strings.Builder
	inWord   bool
	skip     bool // the next word is a file
	words    []string
	commands [][]string
}

// endWord finishes a word; end finishes a command.
func (l *shellLexer) endWord() {
	word := l.word.String()
	switch {
	case !l.inWord:
	case l.skip:
		l.skip = false
	case len(l.words) == 0 && assignment.MatchString(word):
	default:
		l.words = append(l.words, word)
	}
	l.word.Reset()
	l.inWord = false
}

func (l *shellLexer) end() {
	l.endWord()
	if len(l.words) > 0 {
		l.commands = append(l.commands, l.words)
	}
	l.words, l.skip = nil, false
}

func (l *shellLexer) step() {
	c := l.rest[0]
	l.rest = l.rest[1:]
	switch {
	case c == '\'' || c == '"':
		text, after, _ := strings.Cut(l.rest, string(c))
		l.add(text)
		l.rest = after
		if c == '"' {
			l.substitutions(text)
		}
	case c == '$' && strings.HasPrefix(l.rest, "("):
		n := closing(l.rest)
		l.commands = append(l.commands, shellCommands(strings.Trim(l.rest[:n], "()"))...)
		l.add("substituted")
		l.rest = l.rest[n:]
	case c == ' ' || c == '\t':
		l.endWord()
	case c == '#' && !l.inWord:
		l.rest = ""
	case c == '>' || c == '<':
		if strings.Trim(l.word.String(), "12") == "" { // 2>
			l.word.Reset()
			l.inWord = false
		}
		l.endWord()
		l.rest = strings.TrimLeft(l.rest, ">")
		l.skip = true
	case strings.IndexByte(";|&(){}\n", c) >= 0:
		l.end()
	default:
		l.add(string(c))
	}
}

func (l *shellLexer) add(text string) {
	l.inWord = true
	l.word.WriteString(text)
}

// substitutions finds the commands inside double quotes.
func (l *shellLexer) substitutions(text string) {
	for {
		_, after, found := strings.Cut(text, "$(")
		if !found {
			return
		}
		inner, rest, _ := strings.Cut(after, ")")
		l.commands = append(l.commands, shellCommands(inner)...)
		text = rest
	}
}

// closing is where the brackets that text opens with are closed.
func closing(text string) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}
