package script

import (
	"errors"
	"fmt"
	"strings"
)

// Split returns the words of a line as a shell takes them: apart at spaces and tabs, with '…', "…" and backslashes, and
// without what stands behind a # that begins a word. Patterns (*, ?, [) are texts. What a shell would evaluate is
// refused, for nothing is here: a $ or a ` out of single quotes, and what parts commands.
func Split(line string) (words []string, err error) {
	s := splitter{rest: line}
	for s.rest != "" {
		switch c := s.take(); {
		case c == ' ' || c == '\t':
			s.end()
		case c == '#' && !s.open:
			return s.words, nil
		default:
			s.open = true
			if err = s.part(c); err != nil {
				return nil, err
			}
		}
	}
	s.end()
	return s.words, nil
}

// splitter reads words.
type splitter struct {
	rest  string
	words []string
	word  strings.Builder
	open  bool // a word has begun; it may be empty
}

func (s *splitter) take() byte {
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c
}

// end ends a word, if one has begun.
func (s *splitter) end() {
	if s.open {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.open = false
}

var (
	errQuote  = errors.New("a quote has no end: it must be on the same line")
	errEscape = errors.New("a backslash ends the line: a directive is one line, give another one")
)

// evaluated says how a letter that a shell would replace is meant as itself.
func evaluated(c byte) error {
	return fmt.Errorf("%c is not evaluated here: where it is meant as it stands, put the word between single quotes", c)
}

// part reads what a letter begins.
func (s *splitter) part(c byte) error {
	switch {
	case c == '\'':
		text, rest, ok := strings.Cut(s.rest, "'")
		if !ok {
			return errQuote
		}
		s.word.WriteString(text)
		s.rest = rest
	case c == '"':
		return s.quoted()
	case c == '\\':
		if s.rest == "" {
			return errEscape
		}
		s.word.WriteByte(s.take())
	case c == '$' || c == '`':
		return evaluated(c)
	case strings.IndexByte("|&;<>()", c) >= 0:
		return fmt.Errorf("%c has a meaning for a shell, and there is none here: put the word between quotes", c)
	default:
		s.word.WriteByte(c)
	}
	return nil
}

// quoted reads up to a double quote. A backslash stands for itself but before what it keeps from its meaning there.
func (s *splitter) quoted() error {
	for s.rest != "" {
		switch c := s.take(); {
		case c == '"':
			return nil
		case c == '$' || c == '`':
			return evaluated(c)
		case c == '\\' && s.rest != "" && strings.IndexByte("$`\"\\", s.rest[0]) >= 0:
			s.word.WriteByte(s.take())
		default:
			s.word.WriteByte(c)
		}
	}
	return errQuote
}
