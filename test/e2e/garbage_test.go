package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

var errTalksOn = errors.New("the port sent a megabyte in answer to garbage")

// TestGarbageOnThePortsDoesNoHarm sends what does not belong there to the HTTP
// and the peer port of the leader: no broker dies, no job is lost.
func TestGarbageOnThePortsDoesNoHarm(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	home := fed.Sites[0]
	bag := newGated(t)
	a := submit(t, home, bag.spec(4))
	awaitRunning(t, home, a.ID, 3)

	peer, err := home.PeerAddress()
	must(t, err)
	before, err := home.PID()
	must(t, err)
	for _, address := range []string{peer, home.URL.Host} {
		for name, data := range garbage() {
			if err := throw(address, data); err != nil {
				t.Errorf("%s at %s: %v", name, address, err)
			}
		}
	}

	if after, err := home.PID(); err != nil || after != before || !home.Alive() {
		t.Fatalf("broker %d is now %d, %v", before, after, err)
	}
	bag.open(t)
	awaitEnd(t, home, a.ID)
	bag.onceEach(t, 4)
	agree(t, fed)
}

// garbage of several kinds; the random one is seeded, so that it can be sent again.
func garbage() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 256<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	huge := binary.BigEndian.AppendUint64(nil, 1<<63-1)
	return map[string][]byte{
		"noise":        noise,
		"zeros":        make([]byte, 64<<10),
		"ones":         bytes.Repeat([]byte{0xff}, 64<<10),
		"huge lengths": bytes.Repeat(huge, 16),
		"HTTP":         []byte("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"),
		"HTTP/2":       []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\xff\xff\x04\x00\x00\x00\x00\x00"),
		"TLS hello":    append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, noise[:512]...),
		"raft type":    append([]byte{0}, noise[:4096]...),
		"one byte":     {1},
		"nothing":      {},
	}
}

// throw sends bytes, half-closes, and reads until the other side hangs up or a
// second passed: a port may wait for more, but must not answer without end.
func throw(address string, data []byte) error {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, _ = conn.Write(data) // the broker may hang up in the middle
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // likewise
	}
	buf := make([]byte, 4<<10)
	for read := 0; read < 1<<20; {
		n, err := conn.Read(buf)
		read += n
		if err != nil {
			return nil
		}
	}
	return errTalksOn
}
