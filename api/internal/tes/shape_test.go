package tes

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestTooManyValues: a small text with a great many is refused before it is read, and so is one that is too deep.
func TestTooManyValues(t *testing.T) {
	many := func(one string, n int) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	for name, body := range map[string]string{
		"executors": `{"executors":` + many("{}", 60_000) + `}`,
		"arguments": task(`,"x":` + many("1", maxValues)),
		"fields":    `{"tags":{` + strings.Repeat(`"":"",`, maxValues) + `"a":""}}`,
		"depth":     strings.Repeat("[", maxDepth+1),
		"objects":   strings.Repeat(`{"a":`, 8<<20/5),
		"brackets":  strings.Repeat("[],", 8<<20/3),
	} {
		_, err := parse([]byte(body))
		var wrong *badTask
		if !errors.As(err, &wrong) || wrong.field != "body" || !strings.Contains(wrong.reason, "more than") {
			t.Errorf("%s: %v", name, err)
		}
		if n := testing.AllocsPerRun(1, func() { _ = checkShape([]byte(body)) }); n > 20 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for name, body := range map[string]string{
		"arguments": task(`,"x":` + many("1", maxValues-20)), "in a text": task(`,"name":"` + strings.Repeat(`[{\",`, 100_000) + `"`),
	} {
		if _, err := parse([]byte(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzShape: whatever the text is, what is let through has no more values, and is no deeper, than it may.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{task(""), `[[],{"a":"\\\"[","b":[1,2,{}]}]`, `{"a":"`, `]]]]`, `"\u0022,,,"`} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, part []byte, times uint8) {
		body := bytes.Repeat(part, int(times)+1)
		if checkShape(body) != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		values, depth := 0, 0
		for values == 0 || depth > 0 { // the first value
			token, err := dec.Token()
			if err != nil {
				return // it is no JSON from there on
			}
			values++ // names of fields as well, and ends
			switch token {
			case json.Delim('['), json.Delim('{'):
				depth++
			case json.Delim(']'), json.Delim('}'):
				depth--
			}
			if depth > maxDepth || values > 3*maxValues {
				t.Fatalf("%d tokens, %d deep", values, depth)
			}
		}
	})
}
