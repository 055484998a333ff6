package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// The receiver answers a Preamble before anything else is sent:
//
//	greeted or notMeant · uint8 length · its site
//	noPeerPort · uint8 length · which port it is
//
// So whoever dials learns that another site answers before a call, a vote or an
// entry has left it. What is no peer connection of the federation gets no answer.
const (
	greeted  = 1
	notMeant = 2 // the site that the Preamble means is another one
	// noPeerPort: another port of a broker answers, see Misdialed.
	noPeerPort = 3
)

// ErrOtherSite reports that another site answers at an address than the one that
// was meant.
var ErrOtherSite = errors.New("another site answers there")

// ErrNoPeerPort reports that another port of a broker answers at an address.
var ErrNoPeerPort = errors.New("that is no peer port")

// Misdialed returns what another port of a broker, described by port, answers to a
// connection that begins with these bytes: nothing unless they begin a Preamble.
func Misdialed(port string) func(first [4]byte) []byte {
	port = port[:min(len(port), 255)]
	return func(first [4]byte) []byte {
		if first != magic {
			return nil
		}
		return append([]byte{noPeerPort, byte(len(port))}, port...)
	}
}

// Peer is a member and the address at which it is dialed.
type Peer struct {
	Site string // "": whichever answers
	Addr string
}

// None reports whether p is nobody.
func (p Peer) None() bool { return p == Peer{} }

// greet answers a Preamble that is one of this federation's.
func (m *Mux) greet(conn net.Conn, p Preamble) error {
	code, err := byte(greeted), error(nil)
	switch {
	case p.Means == "" && p.Kind == KindJoin: // a join peer is an address, no more
	case p.Means != m.site && !mutated("no-meant-site"):
		code = notMeant
		err = fmt.Errorf("%w: site %s means site %q here, and this is %s: correct `advertise` or `peer` of %[2]q",
			ErrOtherSite, p.Site, p.Means, m.site)
	}
	answer := append([]byte{code, byte(len(m.site))}, m.site...)
	if _, cause := conn.Write(answer); cause != nil && err == nil {
		err = fmt.Errorf("answer Preamble: %w", cause)
	}
	return err
}

// readGreeting reads the answer, and no byte more.
func readGreeting(r io.Reader, to Peer) error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("%w: it hung up on the greeting: no broker's peer port is there, or one of another version", err)
	}
	if string(head[:]) == "HT" {
		return fmt.Errorf("%w: HTTP is spoken there: give the broker's peer address (`peer` in its configuration)", errPreamble)
	}
	text := make([]byte, head[1])
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	switch head[0] {
	case greeted:
		return nil
	case notMeant:
		return fmt.Errorf("%w: %s is site %.63q, not %s", ErrOtherSite, to.Addr, text, to.Site)
	case noPeerPort:
		return fmt.Errorf("%w, but %.255s: give that broker's peer address (`peer` in its configuration, addresses.peer in /v1/sites)", ErrNoPeerPort, printable(text))
	}
	return fmt.Errorf("%w: answer %d", errPreamble, head[0])
}

// printable keeps what comes from outside in one line.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(text))
}

// exchange sends the Preamble and reads the answer to it, until ctx ends.
func (p Preamble) exchange(ctx context.Context, conn net.Conn, to Peer) error {
	unhook := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_, err := conn.Write(p.Encode())
	if err == nil {
		err = readGreeting(conn, to)
	}
	if !unhook() {
		return fmt.Errorf("%w: it takes connections and says nothing: the broker there hangs, or it is no peer port", context.Cause(ctx))
	}
	return err
}
