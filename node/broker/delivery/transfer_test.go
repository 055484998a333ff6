package delivery

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
)

// source is a blob of a peer.
type source struct{ *bytes.Reader }

func (source) Close() error { return nil }

func (p *peer) answer(ctx context.Context, _ string, q transfer.Request) (transfer.Source, transfer.Refusal) {
	whole, err := p.give(ctx, q.Blob, 0, q.Size)
	if err != nil {
		return nil, transfer.NotHere
	}
	return source{bytes.NewReader(whole)}, transfer.Granted
}

// TestRealTransfers: the same over the protocol between brokers.
func TestRealTransfers(t *testing.T) {
	r := newRig(t)
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	client := transfer.NewClient(func(_ context.Context, site, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		s := transfer.Server{Answer: r.peer(site).answer}
		serving.Go(func() { s.Serve(ctx, theirs, relay.Preamble{Site: "home"}) })
		return ours, nil
	})
	r.via = client
	r.peer("site-1").hold(nil)
	defer func() { cancel(); r.close(); client.Close(); serving.Wait() }()
	d := r.left("site-1", 1, 0, huge("large"), big("beside"), "small", "")
	r.start()
	outcome(t, r.next(), d, command.DeliveryOK, "")
	if got := r.content(1, 0); got["out/000"] != huge("large") || got["out/001"] != big("beside") || len(got) != 4 {
		t.Errorf("%d files came home, or others", len(got))
	}
}
