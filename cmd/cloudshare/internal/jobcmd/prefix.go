package jobcmd

import (
	"bytes"
	"io"
)

// linePrefixer puts a prefix before each line that is written to it.
type linePrefixer struct {
	to     io.Writer
	prefix string
	inLine bool // the last line has no end yet
}

// Write implements io.Writer: it counts p, not the prefixes.
func (l *linePrefixer) Write(p []byte) (int, error) {
	var b bytes.Buffer
	for line := range bytes.Lines(p) {
		if !l.inLine {
			b.WriteString(l.prefix)
		}
		b.Write(line)
		l.inLine = line[len(line)-1] != '\n'
	}
	if _, err := l.to.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// endLine ends a line that its writer did not end.
func (l *linePrefixer) endLine() error {
	if !l.inLine {
		return nil
	}
	l.inLine = false
	_, err := io.WriteString(l.to, "\n")
	return err
}
