package coordtest

import (
	"context"
	"io"
	"net"
	"testing"
)

// peerHTTP is what a log has whose members reach each other over a network.
type peerHTTP interface {
	Addr() string
	HTTP() net.Listener
	DialHTTP(ctx context.Context, site, addr string) (net.Conn, error)
}

// httpBetweenMembers: a member's HTTP reaches the one that is meant, which knows who it is; and nobody is reached in
// another one's name. A backend without a network has none.
func httpBetweenMembers(t *testing.T, g *group) {
	a, b, _ := three(g)
	from, networked := a.log.(peerHTTP)
	if !networked {
		return
	}
	to := b.log.(peerHTTP)
	conn, err := from.DialHTTP(g.ctx(), b.site, to.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err = io.WriteString(conn, "question"); err != nil {
		t.Fatal(err)
	}
	taken, err := to.HTTP().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	got := make([]byte, len("question"))
	if _, err = io.ReadFull(taken, got); err != nil || string(got) != "question" {
		t.Errorf("%q, %v", got, err)
	}
	if site := taken.(interface{ PeerSite() string }).PeerSite(); site != a.site {
		t.Errorf("the question is of %q, not of %s", site, a.site)
	}
	if wrong, err := from.DialHTTP(g.ctx(), "c", to.Addr()); err == nil {
		t.Error("b answers for c")
		_ = wrong.Close()
	}
}
