package imports

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain drops the URL that net/http puts before its errors: whoever asked knows it. Such errors may hold any bytes that
// a host has sent, as many as a header has: they are bounded, and printable.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, ErrRefused) {
		return err
	}
	return errors.New(printable(err.Error()))
}

// maxWords bounds what is told of others' words.
const maxWords = 300

func printable(text string) string {
	if len(text) > maxWords {
		text = text[:maxWords] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
