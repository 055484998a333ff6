package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

const (
	// probeAfter is how long a join may take before its addresses are doubted:
	// peers answer at once, and what is no peer's question they log.
	probeAfter = 2 * time.Second
	probeWait  = 2 * time.Second
)

// openLog opens the log. A join is tried until it works, but not at addresses
// where it never can: those of APIs.
func openLog(ctx context.Context, rc raftlog.Config, after time.Duration, log zerolog.Logger) (*raftlog.Log, error) {
	joining, stop := context.WithCancelCause(ctx)
	doubted := make(chan struct{})
	go func() {
		defer close(doubted)
		if err := doubt(joining, rc.Join, after, log); err != nil {
			stop(err)
		}
	}()
	l, err := raftlog.Open(joining, rc)
	if cause := context.Cause(joining); err != nil && ctx.Err() == nil && cause != nil {
		err = cause
	}
	if errors.Is(err, relay.ErrNoPeerPort) {
		err = cli.Usage("%w", err)
	}
	stop(nil)
	<-doubted
	return l, err
}

// doubt looks, after a while, whether the addresses are of peers. The error says
// that none of them is.
func doubt(ctx context.Context, join []string, after time.Duration, log zerolog.Logger) error {
	if len(join) == 0 {
		return nil
	}
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return nil
	}
	var wrong []string
	for _, addr := range join {
		if speaksHTTP(ctx, addr) {
			wrong = append(wrong, addr)
		}
	}
	if len(wrong) < len(join) {
		for _, addr := range wrong {
			log.Warn().Str("join", addr).Msg("HTTP is spoken at this address, it is no peer port: give the broker's peer address (`peer` in its configuration)")
		}
		return nil
	}
	return cli.Usage("join %s: that is no peer port, an HTTP API answers there: give the peer address of that broker (PEER in its `dev` table, addresses.peer in /v1/sites)",
		strings.Join(wrong, ", "))
}

// speaksHTTP asks an address in HTTP; peers hang up.
func speaksHTTP(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err = io.WriteString(conn, "GET /livez HTTP/1.0\r\n\r\n"); err != nil {
		return false
	}
	var head [5]byte
	_, err = io.ReadFull(conn, head[:])
	return err == nil && string(head[:]) == "HTTP/"
}
