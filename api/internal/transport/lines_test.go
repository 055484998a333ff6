package transport

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// TestLineReader splits the same, however the bytes come.
func TestLineReader(t *testing.T) {
	long := strings.Repeat("l", lineBuffer+100)
	text := "one\r\n\n" + long + "\n" + long + long + "\nlast"
	for name, in := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)),
		"data and error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		r := lineReader{in: bufio.NewReaderSize(in, lineBuffer), most: len(long), hold: func(int) error { return nil }}
		for i, want := range []string{"one", "", long, "TOO LONG", "last", "EOF"} {
			line, err := r.next()
			got := string(line)
			if errors.As(err, new(*problem.Problem)) {
				got = "TOO LONG"
			} else if errors.Is(err, io.EOF) {
				got = "EOF"
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got != want {
				t.Errorf("%s: line %d is %.20q, want %.20q", name, i+1, got, want)
			}
		}
	}
}
