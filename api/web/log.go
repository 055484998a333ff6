package web

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// logTail is how much of an output a page begins with: a browser cannot
	// show gigabytes. The whole is at /v1/jobs/{id}/logs.
	logTail = 256 << 10
	// logPace is the least time between two pieces.
	logPace = 100 * time.Millisecond
)

// log follows a task's output as events: "log" with escaped text, numbered by
// the bytes so far, and "end" once the attempt has ended.
func (p *Pages) log(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err != nil {
		return p.refuse(w, r, err)
	}
	q := node.LogQuery{
		Job: id, Task: parameter(r, "task", command.MaxCount-1), Attempt: parameter(r, "attempt", 1<<31), Stream: "stdout", Follow: true,
	}
	if r.URL.Query().Get("stream") == "stderr" {
		q.Stream = "stderr"
	}
	if !p.enter(w, r) { // before the log is opened, which may wait
		return nil
	}
	defer p.streams.Add(-1)
	body, err := p.openLog(r, q)
	switch {
	case isElsewhere(err):
		return err
	case errors.Is(err, context.Canceled):
		return nil
	}
	p.runStream(w, r, func(ctx context.Context, s *stream) error {
		if err != nil {
			what := p.cfg.Problem(err)
			return errors.Join(s.send("note", "", html.EscapeString(short(200, what.Title+": "+what.Detail))), s.send("end", "", "no output"))
		}
		defer context.AfterFunc(ctx, func() { _ = body.Close() })() // wakes a reader that waits for more
		return s.copyLog(ctx, body, resumed(r, "after"))
	})
	if body != nil {
		return closing(body)
	}
	return nil
}

// openLog waits for the task to start, as long as the client and the server do.
func (p *Pages) openLog(r *http.Request, q node.LogQuery) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		select {
		case <-p.cfg.Stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	body, err := p.cfg.Source.Logs(ctx, q)
	if err != nil {
		cancel()
		return nil, err
	}
	return &cancelled{body, cancel}, nil
}

// cancelled ends what a reader was opened with, too.
type cancelled struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *cancelled) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}

// closing drops the error of closing what was only read.
func closing(c io.Closer) error {
	_ = c.Close()
	return nil
}

// copyLog sends what comes, at most ten times a second. A browser that
// reconnects gets what it has not seen; one that is slower than the output, or
// comes late, gets the end of it.
func (s *stream) copyLog(ctx context.Context, body io.Reader, after string) error {
	seen, _ := strconv.ParseInt(after, 10, 64)
	t := newTail()
	go t.fill(body, max(0, seen))
	pace := time.NewTicker(logPace)
	defer pace.Stop()
	var text pieces
	for {
		select {
		case <-t.more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		got := t.takePiece()
		if got.skipped > 0 {
			if err := s.send("note", "", count(got.skipped)+" bytes are left out here: the whole output is behind “text”"); err != nil {
				return err
			}
		}
		if out := text.wholeText(got.text, got.err != nil); out != "" {
			if err := s.send("log", strconv.FormatInt(got.at-int64(len(text.rest)), 10), out); err != nil {
				return err
			}
		}
		if errors.Is(got.err, io.EOF) {
			return s.send("end", "", "the attempt has ended")
		}
		if got.err != nil {
			return fmt.Errorf("read log: %w", got.err)
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pieces turns bytes into escaped text without cutting a character.
type pieces struct{ rest []byte }

// wholeText returns what is whole; with last, all there is.
func (p *pieces) wholeText(b []byte, last bool) string {
	b = append(p.rest, b...)
	cut := len(b)
	if !last {
		cut = wholeRunes(b)
	}
	p.rest = append([]byte(nil), b[cut:]...)
	return escapeLog(strings.ToValidUTF8(string(b[:cut]), "\uFFFD"))
}

// wholeRunes returns the length of b without a character begun at its end.
func wholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// escapeLog makes text harmless: as HTML, and as lines of an event.
func escapeLog(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r < 0x20 || r == 0x7f:
			return '·'
		}
		return r
	}, s)
	return html.EscapeString(s)
}
