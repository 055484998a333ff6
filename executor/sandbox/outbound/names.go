package outbound

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"

	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// Patience with name servers.
const (
	answerIn = 4 * time.Second // of each server
	idleAsk  = 10 * time.Second
	// idleNames ends a flow of questions, of which most ask once, that has all answers. Who asks again later has
	// another one by that. Of 2500 names in a second, one after another, each has a place among maxLookups so.
	idleNames = 200 * time.Millisecond
)

// resolver asks this machine's name servers what tasks want to know. Only questions pass: name servers may do more for
// their own machine, such as to change names, than for everybody.
type resolver struct {
	servers func() []netip.AddrPort
}

// maxQuestion is the most that one takes by datagrams, with what clients add.
const maxQuestion = 4 << 10

var errNoAnswer = errors.New("no name server has answered")

// ask returns the answer to a question, by the network that the task has asked on.
func (r *resolver) ask(network string, question []byte) ([]byte, error) {
	if !isQuestion(question) {
		return nil, errors.New("no question")
	}
	for _, server := range r.servers() {
		if answer, err := askServer(network, server, question); err == nil {
			return answer, nil
		}
	}
	return nil, errNoAnswer
}

// isQuestion reports whether a message asks for one name's records, and no more.
func isQuestion(message []byte) bool {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Response || h.OpCode != 0 {
		return false
	}
	all, err := p.AllQuestions()
	const incremental, whole = dnsmessage.Type(251), dnsmessage.TypeAXFR
	return err == nil && len(all) == 1 && all[0].Class == dnsmessage.ClassINET &&
		!slices.Contains([]dnsmessage.Type{incremental, whole}, all[0].Type)
}

func askServer(network string, server netip.AddrPort, question []byte) ([]byte, error) {
	c, err := net.DialTimeout(network, server.String(), answerIn)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err = c.SetDeadline(time.Now().Add(answerIn)); err != nil {
		return nil, err
	}
	if network == "tcp" {
		if err = writeFramed(c, question); err != nil {
			return nil, err
		}
		return readFramed(c)
	}
	if _, err = c.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, maxDatagram)
	for {
		n, err := c.Read(answer)
		if err != nil {
			return nil, err
		}
		if n > 2 && [2]byte(answer) == [2]byte(question) { // the question's number
			return answer[:n], nil
		}
	}
}

// answerFlow answers what is asked by datagrams.
func (n *network) answerFlow(c *gonet.UDPConn) {
	buf := make([]byte, maxQuestion)
	var open atomic.Int32 // questions without an answer
	for {
		_ = c.SetReadDeadline(time.Now().Add(idleNames))
		size, err := c.Read(buf)
		if late := net.Error(nil); errors.As(err, &late) && late.Timeout() && open.Load() > 0 {
			continue
		}
		if err != nil {
			return
		}
		if !enter(n.asking) {
			continue // who asks by datagrams asks again
		}
		question := slices.Clone(buf[:size])
		open.Add(1)
		go func() {
			defer leave(n.asking)
			defer open.Add(-1)
			if answer, err := n.names.ask("udp", question); err == nil {
				_, _ = c.Write(answer)
			}
		}()
	}
}

// answerStream answers what is asked on a connection, one question after another.
func (n *network) answerStream(c net.Conn) {
	for {
		if err := c.SetDeadline(time.Now().Add(idleAsk)); err != nil {
			return
		}
		question, err := readFramed(c)
		if err != nil {
			return
		}
		answer, err := n.names.ask("tcp", question)
		if err == nil {
			err = c.SetDeadline(time.Now().Add(idleAsk)) // however long that took
		}
		if err != nil || writeFramed(c, answer) != nil {
			return
		}
	}
}

func readFramed(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, message)
	return message, err
}

func writeFramed(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}

// server caches what systemServers has read.
var server struct {
	sync.Mutex
	at   time.Time
	list []netip.AddrPort
}

// systemServers are this machine's name servers, read again once in a while.
func systemServers() []netip.AddrPort {
	server.Lock()
	defer server.Unlock()
	if now := time.Now(); now.Sub(server.at) > answerIn || server.list == nil {
		file, _ := os.ReadFile(sandbox.ResolvConf) // without one, libraries ask loopback
		server.at, server.list = now, nameServers(string(file))
	}
	return server.list
}

// maxServers is how many a library asks.
const maxServers = 3

// nameServers returns those that a resolv.conf names, loopback's if none: also one of this machine's own.
func nameServers(file string) (list []netip.AddrPort) {
	const port = 53
	for line := range strings.Lines(file) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" || len(list) == maxServers {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil {
			list = append(list, netip.AddrPortFrom(a, port))
		}
	}
	if list == nil {
		list = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)}
	}
	return list
}
