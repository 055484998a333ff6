package askprogress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Errors of questions, besides the context's.
var (
	// ErrUnreachable reports that the other site's broker cannot be reached, or has gone in the middle.
	ErrUnreachable = errors.New("its broker cannot be reached")
	// ErrPeer reports that it does not follow the protocol.
	ErrPeer = errors.New("its broker does not answer as it must: it is faulty, or hostile")
)

// Ask asks on a connection of relay.KindProgress what attempts do, at most MaxAttempts of them, and closes it. There is
// one text for each of them; "" = nothing is known. The context bounds it.
func Ask(ctx context.Context, conn net.Conn, refs []Ref) ([]string, error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_, err := conn.Write(relay.EndFrame(appendQuestion(relay.Frame(nil), refs)))
	var b []byte
	if err == nil {
		b, err = relay.ReadFrame(conn, nil, maxAnswer)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it went in the middle of an answer: %w", ErrUnreachable, err)
	}
	texts, err := parseAnswer(b, len(refs))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return texts, nil
}
