package jobspec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner reads one JSON text in one pass, more strictly than encoding/json: it skips, repairs and
// folds nothing. Strings without escapes are slices of src, so that a caller copies the bytes once.
type jsonScanner struct {
	src string
	// pos only grows. Invariant: 0 ≤ pos ≤ len(src).
	pos int
}

// peek returns the next byte after white space, 0 at the end of the text.
func (p *jsonScanner) peek() byte {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it is the next byte.
func (p *jsonScanner) take(c byte) bool {
	if p.peek() != c || p.pos == len(p.src) {
		return false
	}
	p.pos++
	return true
}

// null consumes a null if it is the next value.
func (p *jsonScanner) null() bool {
	if p.peek() != 'n' || !strings.HasPrefix(p.src[p.pos:], "null") {
		return false
	}
	p.pos += len("null")
	return true
}

// malformed returns an error at the current position.
func (p *jsonScanner) malformed(reason string) error {
	return &SpecError{
		Malformed: true, Field: "body",
		Value:  shorten(p.src[p.pos:min(len(p.src), p.pos+40)]),
		Reason: reason + " at byte " + strconv.Itoa(p.pos),
	}
}

// object reads an object. It calls each with every key; each reads the value.
func (p *jsonScanner) object(each func(key string) error) error {
	if !p.take('{') {
		return p.malformed("expected '{'")
	}
	if p.take('}') {
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.malformed("expected a quoted field name")
		}
		key, err := p.str()
		if err != nil {
			return err
		}
		if !p.take(':') {
			return p.malformed("expected ':' after a field name")
		}
		if err := each(key); err != nil {
			return err
		}
		if p.take('}') {
			return nil
		}
		if !p.take(',') {
			return p.malformed("expected ',' or '}'")
		}
	}
}

// array reads an array. It calls each for every element; each reads the element.
func (p *jsonScanner) array(each func() error) error {
	if !p.take('[') {
		return p.malformed("expected '['")
	}
	if p.take(']') {
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if p.take(']') {
			return nil
		}
		if !p.take(',') {
			return p.malformed("expected ',' or ']'")
		}
	}
}

// str reads a string. REQUIRES: the next byte is a quote.
func (p *jsonScanner) str() (string, error) {
	start := p.pos + 1
	for i := start; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			p.pos = i + 1
			return p.src[start:i], nil
		case c == '\\':
			return p.escaped(start, i)
		case c < 0x20:
			p.pos = i
			return "", p.malformed("control character in a string: write it as \\u00XX")
		}
	}
	p.pos = len(p.src)
	return "", p.malformed("text ends inside a string")
}

// escaped reads the rest of a string whose first backslash is at i.
func (p *jsonScanner) escaped(start, i int) (string, error) {
	b := make([]byte, 0, 2*(i-start)+16)
	b = append(b, p.src[start:i]...)
	for i < len(p.src) {
		c := p.src[i]
		switch {
		case c == '"':
			p.pos = i + 1
			return string(b), nil
		case c < 0x20:
			p.pos = i
			return "", p.malformed("control character in a string: write it as \\u00XX")
		case c != '\\':
			b = append(b, c)
			i++
			continue
		}
		var n int
		if b, n = appendEscape(b, p.src[i:]); n == 0 {
			p.pos = i
			return "", p.malformed("bad escape in a string")
		}
		i += n
	}
	p.pos = len(p.src)
	return "", p.malformed("text ends inside a string")
}

// appendEscape decodes the escape at the beginning of s; n is its length. n is 0 if there is no escape,
// or half a surrogate pair.
func appendEscape(b []byte, s string) (_ []byte, n int) {
	if len(s) < 2 {
		return b, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return append(b, s[1]), 2
	case 'b':
		return append(b, '\b'), 2
	case 'f':
		return append(b, '\f'), 2
	case 'n':
		return append(b, '\n'), 2
	case 'r':
		return append(b, '\r'), 2
	case 't':
		return append(b, '\t'), 2
	}
	r, ok := hexEscape(s)
	if !ok {
		return b, 0
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(b, r), 6
	}
	low, ok := hexEscape(s[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return b, 0
	}
	return utf8.AppendRune(b, r), 12
}

// hexEscape reads a backslash, a u and four hexadecimal digits.
func hexEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number reads a number's text; whole is true if it has no fraction or exponent.
func (p *jsonScanner) number() (text string, whole bool, err error) {
	start := p.pos
	digits := func() int {
		from := p.pos
		for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
			p.pos++
		}
		return p.pos - from
	}
	at := func(set string) bool {
		if p.pos < len(p.src) && strings.IndexByte(set, p.src[p.pos]) >= 0 {
			p.pos++
			return true
		}
		return false
	}
	whole = true
	at("-")
	if at("0") {
		if digits() > 0 {
			return "", false, p.malformed("a number must not begin with 0")
		}
	} else if digits() == 0 {
		return "", false, p.malformed("expected a number")
	}
	if at(".") {
		whole = false
		if digits() == 0 {
			return "", false, p.malformed("expected digits after the point")
		}
	}
	if at("eE") {
		whole = false
		at("+-")
		if digits() == 0 {
			return "", false, p.malformed("expected digits in the exponent")
		}
	}
	return p.src[start:p.pos], whole, nil
}

const hexDigits = "0123456789abcdef"

// appendString writes s as a JSON string, with the fewest escapes.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		if from = i + 1; c < 0x20 {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		} else {
			b = append(b, '\\', c)
		}
	}
	return append(append(b, s[from:]...), '"')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

// appendMap writes m with sorted keys.
func appendMap(b []byte, m map[string]string) []byte {
	b = append(b, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		b = appendString(b, m[k])
	}
	return append(b, '}')
}
