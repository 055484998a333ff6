package askprogress

import (
	"net"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

const (
	// idle is for how long a connection may be silent.
	idle = 30 * time.Second
	// takeWithin is how long the asker has to take an answer.
	takeWithin = 5 * time.Second
)

// Server tells other sites what attempts of their jobs do here before they start.
type Server struct {
	// Answer returns what attempts of jobs of the site from do, one text for each; "" = nothing is known. It must not
	// wait.
	Answer func(from string, refs []Ref) []string
}

// Serve answers a connection of relay.KindProgress until that ends, or the asker says nonsense.
func (s *Server) Serve(conn net.Conn, p relay.Preamble) {
	defer conn.Close()
	var buf []byte
	for {
		_ = conn.SetDeadline(time.Now().Add(idle))
		b, err := relay.ReadFrame(conn, buf, maxQuestion)
		if err != nil {
			return
		}
		buf = b
		refs, err := parseQuestion(b)
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(takeWithin))
		answer := appendAnswer(relay.Frame(nil), s.Answer(p.Site, refs), len(refs))
		if _, err = conn.Write(relay.EndFrame(answer)); err != nil {
			return
		}
	}
}
