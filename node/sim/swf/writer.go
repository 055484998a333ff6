package swf

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Writer writes a log: the header first, then job by job.
type Writer struct {
	out *bufio.Writer
	buf []byte
}

// NewWriter writes the header lines; one that does not begin with ";" gets it.
func NewWriter(dst io.Writer, header ...string) *Writer {
	w := &Writer{out: bufio.NewWriter(dst)}
	for _, line := range header {
		line = strings.NewReplacer("\n", " ", "\r", " ").Replace(line)
		if !strings.HasPrefix(line, ";") {
			line = "; " + line
		}
		_, _ = w.out.WriteString(line + "\n") // an error stays for Flush
	}
	return w
}

// Write appends one job: what a Reader reads back is the same.
func (w *Writer) Write(j *Job) error {
	w.buf = w.buf[:0]
	for i := range Fields {
		if i > 0 {
			w.buf = append(w.buf, ' ')
		}
		if whole, frac := j.field(i); whole != nil {
			w.buf = strconv.AppendInt(w.buf, *whole, 10)
		} else {
			w.buf = strconv.AppendFloat(w.buf, *frac, 'f', -1, 64)
		}
	}
	if _, err := w.out.Write(append(w.buf, '\n')); err != nil {
		return fmt.Errorf("write job %d: %w", j.Number, err)
	}
	return nil
}

// Flush writes what is buffered.
func (w *Writer) Flush() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}
