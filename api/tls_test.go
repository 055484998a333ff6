package api

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/certificate"
	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// secured is guarded with a server that speaks TLS.
type secured struct {
	*guarded
	own *certificate.SelfMade
	dir string
}

func serveSecured(t *testing.T, vouched bool) *secured {
	t.Helper()
	dir := t.TempDir()
	own, err := certificate.OpenSelfMade(dir, "site-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuarded(t)
	g.Server = serve(t, g.fake, Config{
		Access: g.store, TLS: certificate.Config(own.Get), Vouched: vouched, Misdialed: misdialed,
	})
	return &secured{g, own, dir}
}

// ask asks as a client with options does.
func (s *secured) ask(addr string, options ...client.Option) error {
	s.t.Helper()
	c, err := client.New(addr, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_, err = c.WithToken(s.token).Whoami(limit(s.t))
	if err != nil && strings.Contains(err.Error(), "\n") {
		s.t.Errorf("more than a line: %q", err)
	}
	return err
}

// A broker is trusted by the pin of its key, or by the authorities that somebody names, and else by nobody; whoever
// speaks the wrong protocol is told so.
func TestWhoIsTrusted(t *testing.T) {
	s := serveSecured(t, false)
	plain := serveGuarded(t, newFake("site-1"))
	at := "https://" + s.Addr()
	text, err := os.ReadFile(filepath.Join(s.dir, certificate.CertFile))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	other := s.own.Pin
	other[0]++
	for what, c := range map[string]struct {
		addr   string
		option []client.Option
		want   string // "" = it is answered
	}{
		"pin":               {at, []client.Option{client.WithPin(s.own.Pin)}, ""},
		"authority":         {at, []client.Option{client.WithCAs(pool)}, ""},
		"another pin":       {at, []client.Option{client.WithPin(other)}, "ask its operator for a new token"},
		"another authority": {at, []client.Option{client.WithCAs(x509.NewCertPool())}, "--ca-file"},
		"nobody":            {at, nil, "--ca-file"},
		"plain HTTP":        {"http://" + s.Addr(), nil, "ask by https://"},
		"TLS to plain HTTP": {"https://" + plain.Addr(), []client.Option{client.WithPin(s.own.Pin)}, "use http://"},
	} {
		err := s.ask(c.addr, c.option...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", what, err)
		}
		if untrusted := strings.HasSuffix(what, "pin") && what != "pin"; untrusted && !errors.Is(err, client.ErrUntrusted) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// httpClient trusts anybody: what is tested is behind the certificate.
func httpClient(t *testing.T, cfg *tls.Config) *http.Client {
	t.Helper()
	cfg.InsecureSkipVerify = true
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

func TestTLSOfTheAPI(t *testing.T) {
	for _, vouched := range []bool{true, false} {
		s := serveSecured(t, vouched)
		c := httpClient(t, &tls.Config{})
		res, err := c.PostForm("https://"+s.Addr()+"/login", url.Values{"token": {s.token}})
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.ProtoMajor != 2 || res.TLS.Version != tls.VersionTLS13 {
			t.Errorf("%s, TLS %x", res.Proto, res.TLS.Version)
		}
		cookies := res.Cookies()
		if len(cookies) != 1 || !cookies[0].Secure || !cookies[0].HttpOnly {
			t.Errorf("%d: cookies %v", res.StatusCode, cookies)
		}
		if got := res.Header.Get("Strict-Transport-Security"); (got != "") != vouched {
			t.Errorf("vouched %v: %q", vouched, got)
		}
		if _, err = httpClient(t, &tls.Config{MaxVersion: tls.VersionTLS11}).Get("https://" + s.Addr() + "/livez"); err == nil {
			t.Error("TLS 1.1 is taken")
		}
	}
}

// A stream of lines goes both ways at once by HTTP/2, too.
func TestLinesByHTTP2(t *testing.T) {
	s := serveSecured(t, false)
	c, err := client.New("https://"+s.Addr(), client.WithPin(s.own.Pin))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, `{"command":["true"]}`+"\n") }()
	n := 0
	err = c.WithToken(s.token).SubmitMany(limit(t), r, client.SubmitOptions{}, func(client.Result) error {
		if n++; n == 1 { // the second line is sent when the first one is answered
			go func() { _, _ = io.WriteString(w, `{"command":["true"]}`+"\n"); _ = w.Close() }()
		}
		return nil
	})
	if err != nil || n != 2 {
		t.Errorf("%d lines answered, %v", n, err)
	}
}

// misdialed stands in for what the relay says to a connection of TLS between brokers.
func misdialed(first [4]byte) []byte {
	if first[0] == 0x16 {
		return []byte("this is no peer port")
	}
	return nil
}

// A broker that takes the port for a peer port is told so, as by a plain port.
func TestBrokerAtTheTLSPort(t *testing.T) {
	s := serveSecured(t, false)
	want := misdialed([4]byte{0x16, 3, 1, 0})
	conn := dialRaw(t, s.Addr())
	go func() {
		_ = tls.Client(writeOnly{conn}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"cloudshare/5"}}).Handshake()
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// What a plain request to the port for TLS is answered is a whole answer, however long the request is.
func TestPlainRequestIsAnswered(t *testing.T) {
	s := serveSecured(t, false)
	conn := dialRaw(t, s.Addr())
	go func() {
		_, _ = io.WriteString(conn, "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX-Long: "+strings.Repeat("x", 20_000)+"\r\n\r\n")
	}()
	answer, err := io.ReadAll(conn)
	head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	var p wire.Problem
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 400 ") || json.Unmarshal([]byte(body), &p) != nil ||
		!strings.Contains(p.Detail, "https://") {
		t.Errorf("%v: %s", err, answer)
	}
}
