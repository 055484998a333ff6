package local

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// recordAndSend records a line and tells the broker, in this order. Without a broker, or
// with a full disk, one of the two has to do.
func (s *supervisor) recordAndSend(l line) { s.send(s.record(l)) }

// record appends a line to the journal and returns its text.
func (s *supervisor) record(l line) []byte {
	text, err := l.text()
	s.write(text, err)
	return text
}

// recordLater leaves it to the clerk: the caller has a clock to look at.
func (s *supervisor) recordLater(l line) []byte {
	text, err := l.text()
	s.clerk.Do(func() { s.write(text, err) })
	return text
}

// write appends a text to the journal, or says why there is none.
func (s *supervisor) write(text []byte, err error) {
	if err == nil {
		_, err = s.journal.Write(text)
	}
	if err != nil {
		s.torn.Store(true)
		fmt.Fprintf(os.Stderr, "supervise: append to journal: %v\n", err)
	}
}

// send tells the broker a line.
func (s *supervisor) send(text []byte) {
	if len(text) > 0 && !s.orphan {
		_ = unix.Send(fdControl, text, unix.MSG_NOSIGNAL)
	}
}

// receive takes one packet, "" if none is there. It notes the broker's end.
func (s *supervisor) receive() (string, error) {
	n, _, err := unix.Recvfrom(fdControl, s.heard[:], unix.MSG_DONTWAIT)
	switch {
	case err == nil && n > 0:
		return string(s.heard[:n]), nil
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return "", nil
	case err == nil || errors.Is(err, unix.ECONNRESET):
		s.orphan = true
		s.sources.Drop(fdControl) // it would be readable forever
		return "", nil
	}
	return "", fmt.Errorf("hear from broker: %w", err)
}
