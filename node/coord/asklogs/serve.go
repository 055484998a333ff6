package asklogs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

const (
	// idle is for how long a connection may be silent.
	idle = 90 * time.Second
	// takeWithin is how long the asker has to take what one Write holds.
	takeWithin = 30 * time.Second
	// patience is how long the attempts of a question that are about to end are waited for together, and leastPatience
	// how long each of them at least.
	patience      = 2 * time.Second
	leastPatience = 10 * time.Millisecond
)

// Output is what an attempt that has ended has written: stdout, stderr.
type Output struct {
	Attempt uint32
	Token   uint64
	Streams [2]io.ReadCloser
}

// Close closes the streams that are open.
func (o *Output) Close() {
	for _, r := range o.Streams {
		if r != nil {
			_ = r.Close()
		}
	}
}

// Server gives other sites what attempts of their jobs have written here. It holds 300 KiB for each connection on which
// a question is answered; how many a site may have is relay's to say.
type Server struct {
	// Answer opens the output of an attempt of a job of the site from, or says why not. Its streams end when the
	// attempt has, and what of them comes only behind the end of ctx may be an error.
	Answer func(ctx context.Context, from string, r Ref) (Output, Refusal)
}

// Serve answers a connection of relay.KindLogs until that or ctx ends, or the asker says nonsense.
func (s *Server) Serve(ctx context.Context, conn net.Conn, p relay.Preamble) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	x := &session{Server: s, from: p.Site, out: bufio.NewWriterSize(writer{conn}, maxPiece)}
	var buf []byte
	for ctx.Err() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(idle))
		b, err := relay.ReadFrame(conn, buf, maxQuestion)
		if err != nil {
			return
		}
		buf = b
		q, err := parseQuestion(b)
		if err != nil || x.answer(ctx, &q) != nil {
			return
		}
	}
}

// writer gives each Write its time.
type writer struct{ net.Conn }

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	_ = w.SetWriteDeadline(time.Now().Add(takeWithin))
	return w.Conn.Write(b)
}

// session is one connection.
type session struct {
	*Server
	from    string
	out     *bufio.Writer
	frame   []byte
	streams [2][]byte // room for what is read first
}

func (x *session) answer(ctx context.Context, q *Question) error {
	until := time.Now().Add(patience)
	for _, r := range q.Refs {
		waiting, cancel := context.WithTimeout(ctx, max(time.Until(until), leastPatience))
		err := x.answerOne(waiting, r, q.Most)
		cancel()
		if err != nil {
			return err
		}
	}
	return x.out.Flush()
}

// answerOne sends one output; a small one in one frame.
func (x *session) answerOne(ctx context.Context, r Ref, most int64) error {
	o, refusal := x.Answer(ctx, x.from, r)
	if refusal != Granted {
		return x.send(appendEnd(x.begin(), Done{Refusal: refusal}))
	}
	defer o.Close()
	var first [2][]byte
	var whole [2]bool
	for n := range first {
		if x.streams[n] == nil {
			x.streams[n] = make([]byte, maxPiece)
		}
		size, err := io.ReadFull(o.Streams[n], x.streams[n][:min(most, maxPiece)])
		first[n] = x.streams[n][:size]
		whole[n] = isEnd(err) || int64(size) == most
		if err != nil && !isEnd(err) {
			return x.send(appendEnd(x.begin(), Done{Refusal: refusalOf(ctx)}))
		}
	}
	d := Done{Attempt: o.Attempt, Token: o.Token}
	if whole[0] && whole[1] {
		return x.send(appendWhole(x.begin(), d, first))
	}
	for n := range first {
		err := x.sendStream(n, first[n], o.Streams[n], most, whole[n])
		if err != nil && !errors.Is(err, errSource) {
			return err
		}
		if err != nil {
			d.Refusal = refusalOf(ctx)
			break
		}
	}
	return x.send(appendEnd(x.begin(), d))
}

// isEnd reports whether a stream has ended.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// refusalOf says why a stream broke off.
func refusalOf(ctx context.Context) Refusal {
	if ctx.Err() != nil {
		return Running
	}
	return Unreadable
}

// errSource reports a stream that broke off.
var errSource = errors.New("output breaks off")

// sendStream sends a stream, its beginning being read already, as far as it may be.
func (x *session) sendStream(n int, b []byte, from io.Reader, most int64, whole bool) error {
	for {
		if len(b) > 0 {
			if err := x.send(appendPiece(x.begin(), n, b)); err != nil {
				return err
			}
		}
		if most -= int64(len(b)); whole || most <= 0 {
			return nil
		}
		size, err := io.ReadFull(from, x.streams[n][:min(most, maxPiece)])
		if b = x.streams[n][:size]; err != nil {
			if whole = isEnd(err); !whole {
				return errSource
			}
		}
	}
}

func (x *session) begin() []byte { return relay.Frame(x.frame[:0]) }

func (x *session) send(frame []byte) error {
	x.frame = frame
	_, err := x.out.Write(relay.EndFrame(frame))
	return err
}
