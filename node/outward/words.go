package outward

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain drops the URL that net/http puts before its errors: whoever asked knows it. Such errors may hold any bytes that
// a host has sent, as many as a header has: they are bounded, and printable. What wraps Refused stays.
func (r *Rules) Plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, r.Refused) {
		return err
	}
	return errors.New(printable(err.Error()))
}

// MaxWords bounds what is told of others' words, in bytes.
const MaxWords = 300

func printable(text string) string {
	if len(text) > MaxWords {
		text = text[:MaxWords] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
