package jobspec

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ShellWords writes words on one line so that a shell reads them back. It quotes words that need it,
// and writes those with unprintable characters as $'…', which bash, ksh and zsh know.
func ShellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}

func shellWord(w string) string {
	switch {
	case strings.IndexFunc(w, Unprintable) >= 0 || strings.ContainsRune(w, '\uFFFD'):
		return shellEscaped(w)
	case w == "" || w[0] == '=' || strings.IndexFunc(w, needsQuotes) >= 0: // zsh looks for a program after =
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return w
}

// needsQuotes reports whether a character has a meaning in some shell.
func needsQuotes(r rune) bool {
	letter := 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("%+,-./:=@_", r)
}

// shellEscaped writes a word with escapes for the bytes that are unprintable.
func shellEscaped(w string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(w) > 0 {
		r, n := utf8.DecodeRuneInString(w)
		whole := w[:n]
		w = w[n:]
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case Unprintable(r) || r == '\uFFFD':
			for _, c := range []byte(whole) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}
