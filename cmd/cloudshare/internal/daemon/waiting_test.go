package daemon

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// TestWaitingRoomIsBounded: while as many connections as may be are open and say
// nothing, another one waits; as soon as one of them ends it is answered.
func TestWaitingRoomIsBounded(t *testing.T) {
	port, err := ensemble.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	w := &waitingRoom{addr: addr, site: "b", log: zerolog.New(zerolog.NewTestWriter(t))}
	w.setJoinError([]string{"127.0.0.1:1"}, errors.New("nobody answers"))
	t.Cleanup(w.close)
	var silent []net.Conn
	for range waitingConns {
		silent = append(silent, dialed(t, addr))
	}
	last := dialed(t, addr)
	if _, err := last.Write([]byte("GET /readyz HTTP/1.1\r\nHost: b\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(last)
	_ = last.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("beside %d connections another is served: %v", waitingConns, err)
	}
	_ = silent[0].Close()
	_ = last.SetReadDeadline(time.Now().Add(time.Minute))
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("it is answered by %s", answer.Status)
	}
}

func dialed(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
