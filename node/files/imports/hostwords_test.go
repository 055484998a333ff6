package imports

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/outward"
)

// TestLongWordsOfHosts: what a host sends where a header should be stood in the error whole, up to 64 KiB with any
// bytes, and from there in logs and on terminals.
func TestLongWordsOfHosts(t *testing.T) {
	r := newRig(t, Config{Private: true}, func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func(c net.Conn) { _ = c.Close() }(conn)
		_, _ = io.WriteString(out, "HTTP/1.1 200 OK\r\nBad \x1b[31m\xff: "+strings.Repeat("y", 10_000)+"\r\n\r\n")
		_ = out.Flush()
	})
	_, err := r.end("/", files.Hash{})
	if !errors.Is(err, ErrFailed) || len(err.Error()) > 2*outward.MaxWords || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("%.2000q", err)
	}
}
