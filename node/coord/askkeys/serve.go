package askkeys

import (
	"context"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/seal"
)

const (
	// idle is for how long a connection may be silent.
	idle = 90 * time.Second
	// patience is how long an answer may take to be made, and to be sent.
	patience = 2 * time.Second
)

// Server answers other sites' questions for keys.
type Server struct {
	Site string // whose keys
	// Answer says what the site from gets, one answer for each attempt; ctx bounds how long it may wait for the state
	// to be as new as the asker's.
	Answer func(ctx context.Context, from string, q Question) []seal.Answer
}

// Serve answers a connection of relay.KindKeys until that ends, or says nonsense.
func (s *Server) Serve(conn net.Conn, p relay.Preamble) {
	bounds := relay.Answering{Question: maxQuestion, Idle: idle, Take: patience}
	bounds.Answer(conn, func(dst, question []byte) ([]byte, bool) {
		q, err := parseQuestion(question, s.Site)
		if err != nil {
			return nil, false
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return appendAnswers(dst, s.Answer(ctx, p.Site, q)), true
	})
}
