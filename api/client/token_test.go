package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// good takes one token, and answers with the body that it was sent.
func good(t *testing.T, token string) (addr string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"type":"urn:cloudshare:problem:unauthenticated","title":"No","status":401}`))
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// A refused token is replaced once, also for a request with a body; what cannot be sent again is not.
func TestARefusedTokenIsReplaced(t *testing.T) {
	addr, asked := good(t, "second")
	c, err := New(addr)
	if err != nil {
		t.Fatal(err)
	}
	c = c.WithTokens(func(refused string) (string, error) {
		return map[string]string{"": "first", "first": "second"}[refused], nil
	})
	res, err := c.do(t.Context(), http.MethodPost, "/x", nil, strings.NewReader("body"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "body" || asked.Load() != 2 {
		t.Errorf("%q, %v, asked %d times", text, err, asked.Load())
	}
	var p *Problem
	_, err = c.do(t.Context(), http.MethodPost, "/x", nil, io.MultiReader(strings.NewReader("body")), nil)
	if !errors.As(err, &p) || p.Status != http.StatusUnauthorized || asked.Load() != 3 {
		t.Errorf("a body that has gone: %v, asked %d times", err, asked.Load())
	}
}

// The refusal is the answer where there is no other token, and the source's error where there is one.
func TestARefusedTokenIsTheLast(t *testing.T) {
	addr, asked := good(t, "none")
	c, err := New(addr)
	if err != nil {
		t.Fatal(err)
	}
	var p *Problem
	_, err = c.WithToken("first").Whoami(t.Context())
	if !errors.As(err, &p) || p.Status != http.StatusUnauthorized || asked.Load() != 1 {
		t.Errorf("one token: %v, asked %d times", err, asked.Load())
	}
	ended := errors.New("the login has ended")
	_, err = c.WithTokens(func(refused string) (string, error) {
		if refused != "" {
			return "", ended
		}
		return "first", nil
	}).Whoami(t.Context())
	if !errors.Is(err, ended) || errors.Is(err, ErrUnreachable) || asked.Load() != 2 {
		t.Errorf("the source fails: %v, asked %d times", err, asked.Load())
	}
}
