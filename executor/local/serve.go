package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// serve runs attempts until the broker is gone.
func (s *supervisor) serve() error {
	for !s.orphan {
		from, err := s.sources.Wait(watchdog.Never)
		if err != nil {
			return err
		}
		msg, err := s.receive()
		if err != nil {
			return err
		}
		off, n, ok := parseRun(msg)
		if !ok { // a stop that came too late; an attempt may stand behind it
			if msg == "" && from&watchdog.FromSignal != 0 {
				s.termed.Drain()
			}
			continue
		}
		// A TERM by now is for this attempt: a later broker knows it already.
		if err := s.serveOne(off, n); err != nil {
			return err
		}
	}
	return nil
}

// parseRun reads "run OFFSET LENGTH", the place of an attempt in the journal.
func parseRun(msg string) (off, n int64, ok bool) {
	place, ok := strings.CutPrefix(msg, "run ")
	first, second, _ := strings.Cut(place, " ")
	off, err1 := strconv.ParseInt(first, 10, 64)
	n, err2 := strconv.ParseInt(second, 10, 64)
	return off, n, ok && err1 == nil && err2 == nil
}

// serveOne runs the attempt that stands in the journal at off.
func (s *supervisor) serveOne(off, n int64) error {
	if off < 0 || n <= 0 || n > maxLine {
		return fmt.Errorf("run of %d bytes at %d", n, off)
	}
	raw := make([]byte, n)
	if _, err := s.journal.ReadAt(raw, off); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	l, ok := parseLine(raw)
	if !ok || l.Ask == nil {
		return errors.New("journal holds no task where one was announced")
	}
	a := newAttempt(s, l.Ask)
	r := a.run()
	s.termed.Drain() // of this attempt, for certain: nobody gives another before its end is told
	if err := a.report(r); err != nil {
		return err
	}
	s.group.renew()
	return s.freshOutputs()
}

// freshOutputs makes the two output files of the next attempt, unless the last
// one wrote nothing and they can serve again: making a file costs more than
// running a small task.
func (s *supervisor) freshOutputs() (err error) {
	for i, name := range attempts.Streams {
		if s.out.Files[i] != nil {
			continue
		}
		if s.out.Files[i], err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND|os.O_TRUNC, 0o600); err != nil {
			return fmt.Errorf("make output file: %w", err)
		}
	}
	return nil
}
