package api

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/access"
)

// serveSocket is newGuarded with a server that listens on the operator's socket, too.
func serveSocket(t *testing.T) (g *guarded, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	g = newGuarded(t)
	g.Server = serve(t, newFake("site-1"), Config{Access: g.store, Operator: l, MaxConns: 8})
	return g, path
}

func socketClient(t *testing.T, path string) *client.Client {
	t.Helper()
	c, err := client.New("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Whoever has lost all tokens makes one on the operator's socket.
func TestOperatorsSocket(t *testing.T) {
	g, path := serveSocket(t)
	if err := g.store.Revoke(g.store.List()[0].ID); err != nil {
		t.Fatal(err)
	}
	c := socketClient(t, path)
	who, err := c.Whoami(t.Context())
	if err != nil || who.Role != "operator" || who.Token != nil || who.User != "" {
		t.Errorf("%+v, %v", who, err)
	}
	made, err := c.CreateToken(t.Context(), wire.TokenRequest{Name: "operator", Role: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	byTCP, err := client.New(g.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer byTCP.Close()
	list, err := byTCP.WithToken(made.Text).Tokens(t.Context())
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != made.ID {
		t.Errorf("%+v, %v", list, err)
	}
	if err = c.RevokeToken(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
	if _, err = byTCP.Whoami(t.Context()); err == nil {
		t.Error("TCP needs no token")
	}
}

// A token on the socket counts: who sends one wants to be its user. Host names do not matter: no browser comes here.
func TestTokensOnTheOperatorsSocket(t *testing.T) {
	g, path := serveSocket(t)
	c := socketClient(t, path)
	who, err := c.WithToken(g.create(access.User, time.Time{})).Whoami(t.Context())
	if err != nil || who.User != "alice" || who.Role != "user" {
		t.Errorf("%+v, %v", who, err)
	}
	if _, err = c.WithToken(newGuarded(t).token).Whoami(t.Context()); err == nil {
		t.Error("a foreign token is taken")
	}
	programs := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://whatever.example/v1/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := programs.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("another host's name: %s", res.Status)
	}
}

// A crowd on the API's port does not keep the operator out.
func TestOperatorsSocketInACrowd(t *testing.T) {
	g, path := serveSocket(t)
	for range 16 { // twice as many as are taken
		conn, err := net.Dial("tcp", g.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := socketClient(t, path).Whoami(t.Context()); err != nil {
		t.Error(err)
	}
}
