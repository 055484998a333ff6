package client_test

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/api/client"
)

// TestTokenStaysSecured: a broker of HTTPS that leads to plain HTTP gets no token sent there.
func TestTokenStaysSecured(t *testing.T) {
	var heard atomic.Int64
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }))
	defer plain.Close()
	secured := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer secured.Close()
	pool := x509.NewCertPool()
	pool.AddCert(secured.Certificate())
	c, err := client.New(secured.URL, client.WithCAs(pool))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.WithToken("secret").Whoami(t.Context()); err == nil || !strings.Contains(err.Error(), "in plain") {
		t.Errorf("%v", err)
	}
	if heard.Load() != 0 {
		t.Error("the plain server was asked")
	}
}
