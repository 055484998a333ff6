package local

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// maxLine bounds a journal's line: a task's command and environment come from
// a request body of at most 1 MiB, and escapes cost up to four times that.
const maxLine = 8 << 20

// line is one line of a slot's journal; exactly one field is set. Handler and
// supervisor both append to it, each line in one write.
type line struct {
	Sup  *owner  `json:"sup,omitempty"`
	Ask  *asked  `json:"ask,omitempty"`
	Run  *begun  `json:"run,omitempty"`
	End  *ended  `json:"end,omitempty"`
	Drop *string `json:"drop,omitempty"` // attempt's name: forgotten
	Void *string `json:"void,omitempty"` // attempt's name: never handed over
	// Up: the supervisor serves. One that died without this line has begun nothing.
	Up *served `json:"up,omitempty"`
	// Sick is why the supervisor begins nothing any more: what it was given and has not
	// ended never ran.
	Sick *string `json:"sick,omitempty"`
	// Stop asks a contained supervisor of an earlier broker for the end: a signal alone
	// could be its task's.
	Stop *stopping `json:"stop,omitempty"`
}

// stopping is what a later broker asks for.
type stopping struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// served says nothing but that the supervisor came to serve.
type served struct{}

// owner is the process that holds the journal's lock.
type owner struct {
	Pid  int    `json:"pid"`
	Boot string `json:"boot"`
}

// asked is an attempt handed to the supervisor.
type asked struct {
	Task   executor.Task `json:"task"`
	Grace  time.Duration `json:"grace"`
	MaxLog int64         `json:"maxLog"`
	CPUs   []int         `json:"cpus,omitempty"`
}

// begun is an attempt whose process runs.
type begun struct {
	Name string    `json:"name"`
	Pid  int       `json:"pid"`
	At   time.Time `json:"at"`
}

// ended is an attempt's result; At is the moment of recording it.
type ended struct {
	Name   string          `json:"name"`
	Result executor.Result `json:"result"`
	Out    int64           `json:"out"` // bytes of stdout kept
	Err    int64           `json:"err"`
	At     time.Time       `json:"at"`
}

// end is it for the handler's attempts.
func (e *ended) end() *attempts.End {
	return &attempts.End{Result: e.Result, At: e.At, Out: [2]int64{e.Out, e.Err}}
}

// appendLine writes one line. It begins with a newline as well, so that a line
// torn by a full disk cannot swallow the next one.
func appendLine(f *os.File, l line) (n int, err error) {
	text, err := l.text()
	if err != nil {
		return 0, err
	}
	if n, err = f.Write(text); err != nil {
		return n, fmt.Errorf("append to journal: %w", err)
	}
	return n, nil
}

// text returns the line with its ends.
func (l line) text() ([]byte, error) {
	text := append(l.appendText([]byte{'\n'}), '\n')
	if len(text) > maxLine {
		return nil, fmt.Errorf("journal line of %d bytes: at most %d", len(text), maxLine)
	}
	return text, nil
}

// readJournal returns the lines that can be read; a torn or foreign line is
// as good as unwritten.
func readJournal(r io.Reader) ([]line, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxJournal+2*maxLine))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var lines []line
	for raw := range bytes.SplitSeq(b, []byte("\n")) {
		if l, ok := parseLine(raw); ok {
			lines = append(lines, l)
		}
	}
	return lines, nil
}
