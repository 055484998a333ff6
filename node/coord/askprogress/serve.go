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
	bounds := relay.Answering{Question: maxQuestion, Idle: idle, Take: takeWithin}
	bounds.Answer(conn, func(dst, question []byte) ([]byte, bool) {
		refs, err := parseQuestion(question)
		if err != nil {
			return nil, false
		}
		return appendAnswer(dst, s.Answer(p.Site, refs), len(refs)), true
	})
}
