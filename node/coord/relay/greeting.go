package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
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
	// The key that the dialer has shown is not one that may open this connection.
	unknownKey = 4
	banned     = 5
	otherName  = 6
	noElector  = 7
	// Keys are used by one of the two only. Of TLS the dialer has a key, else the one that answers.
	plainPreamble = 8
	noKeys        = 9
)

// Errors of a member whose key is not taken.
var (
	// ErrUnknownKey: nobody was admitted with it.
	ErrUnknownKey = errors.New("this site's key is no member's there")
	// ErrBanned: its site was expelled from the federation.
	ErrBanned = errors.New("banned from the federation, or denied by that member")
	// ErrOtherName: it is that of another site than the one that dials, or the site has another one.
	ErrOtherName = errors.New("the key is not that of the site")
	// ErrNotElector: it is that of a site that may not vote, and raft's connections come from those that do.
	ErrNotElector = errors.New("the site is no elector")
	// ErrNoKey: members there prove who they are, and this one dials without a key.
	ErrNoKey = errors.New("a key is needed there, and this site dials without one")
	// ErrNoKeysThere: this member has a key, and the one that answers knows none.
	ErrNoKeysThere = errors.New("no keys are known there, so it is of another federation")
)

// refusals say what each code means to the one who is refused, and what to do.
var refusals = map[byte]struct {
	err    error
	remedy string
}{
	unknownKey: {ErrUnknownKey, "was it admitted? it must be invited (cloudshare invite NAME at a member), and that member must know it already"},
	banned:     {ErrBanned, "ask its operator, and the electors (cloudshare motions)"},
	otherName:  {ErrOtherName, "start the broker under the name for which its key was admitted, or restore its key"},
	noElector:  {ErrNotElector, "electors make it one (cloudshare motions)"},

	plainPreamble: {ErrNoKey, "join by a token (cloudshare invite NAME at a member)"},
	noKeys:        {ErrNoKeysThere, "correct the address"},
}

// ErrOtherSite reports that another site answers at an address than the one that
// was meant.
var ErrOtherSite = errors.New("another site answers there")

// ErrNoPeerPort reports that another port of a broker answers at an address.
var ErrNoPeerPort = errors.New("that is no peer port")

// Misdialed returns what another port of a broker, described by port, answers to a
// connection that begins with these bytes: nothing unless they begin a Preamble, or TLS, which neither port speaks.
func Misdialed(port string) func(first [4]byte) []byte {
	port = port[:min(len(port), 255)]
	return func(first [4]byte) []byte {
		if first != magic && !isHello(first) {
			return nil
		}
		return append([]byte{noPeerPort, byte(len(port))}, port...)
	}
}

// Peer is a member and the address at which it is dialed.
type Peer struct {
	Site string // "": whichever answers
	Addr string
	// Node is that of the key that must answer; zero: the roster says it by Site.
	Node [16]byte
}

// None reports whether p is nobody.
func (p Peer) None() bool { return p == Peer{} }

// greet answers a Preamble that is one of this federation's.
func (m *Mux) greet(conn net.Conn, p Preamble) error {
	code, err := byte(greeted), error(nil)
	switch {
	case p.Means == "" && p.Kind.isQuestion(): // the peer of a question is an address, no more
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

// refuseKey answers a dialer whose key is not taken. A stranger is not told which site this is.
func (m *Mux) refuseKey(conn net.Conn, p Preamble, code byte) error {
	answer := append([]byte{code, byte(len(m.site))}, m.site...)
	switch c, _ := conn.(*peerConn); {
	case code == unknownKey:
		answer = []byte{code, 0}
	case code == banned && c != nil: // the motion stands behind the site
		if motion := m.net.Identity.roster.Find(c.key).Motion; motion != 0 {
			text := fmt.Sprintf("%s\n%d", m.site, motion)
			answer = append([]byte{code, byte(len(text))}, text...)
		}
	}
	_, _ = conn.Write(answer) // it may have gone
	return fmt.Errorf("refused a connection of kind %d as site %.63q: %w", p.Kind, p.Site, refusals[code].err)
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
	if motion := motionOf(text); head[0] == banned && motion != 0 {
		return fmt.Errorf("%s refuses: %w: the electors have expelled this site by motion %d: ask them to take it back "+
			"(`cloudshare unban` at one of them)", to.Addr, ErrBanned, motion)
	}
	if r, ok := refusals[head[0]]; ok {
		return fmt.Errorf("%s refuses: %w: %s", to.Addr, r.err, r.remedy)
	}
	return fmt.Errorf("%w: answer %d", errPreamble, head[0])
}

// motionOf returns the motion that a refusal names, 0 = none.
func motionOf(text []byte) uint64 {
	_, number, _ := bytes.Cut(text, []byte{'\n'})
	n, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return n
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
