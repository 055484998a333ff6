package daemon

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
)

func TestTellService(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	tellService(zerolog.Nop(), "READY=1")
	buf := make([]byte, 100)
	n, err := l.Read(buf)
	if err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	tellService(zerolog.Nop(), "READY=1") // nobody to tell: nothing happens
}
