package relay

import (
	"net"
	"time"
)

// Answering bounds a connection on which a member asks one question after the other, each in a frame.
type Answering struct {
	Question int           // bytes of the longest
	Idle     time.Duration // for how long the connection may be silent
	Take     time.Duration // how long the asker has to take an answer
}

// Answer answers questions on a connection, and closes it, when it ends or answer returns false: the asker says
// nonsense. answer appends to dst, and does not keep the question.
func (a Answering) Answer(conn net.Conn, answer func(dst, question []byte) ([]byte, bool)) {
	defer conn.Close()
	var buf []byte
	for {
		_ = conn.SetDeadline(time.Now().Add(a.Idle))
		question, err := ReadFrame(conn, buf, a.Question)
		if err != nil {
			return
		}
		buf = question
		frame, ok := answer(Frame(nil), question)
		if !ok {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(a.Take))
		if _, err = conn.Write(EndFrame(frame)); err != nil {
			return
		}
	}
}
