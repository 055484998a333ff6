package oidc

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A new key of the provider is noticed, and the tokens of the withdrawn one are not taken any more.
func TestKeyRotation(t *testing.T) {
	p := startProvider(t)
	b := startBroker(t, p)
	if got := b.ask(p.sign(t, nil)); got.Status != 200 {
		t.Fatal(got.Detail)
	}
	old := p.sign(t, map[string]any{"sub": "2"})
	p.rotate(t, "second")
	fresh := p.sign(t, nil)
	b.await("the new key", func() error {
		if got := b.ask(fresh); got.Status != 200 {
			return errors.New(got.Detail)
		}
		return nil
	})
	b.refuses("of the old key", old, 401, "does not have")
}

// A provider that is away keeps no broker from starting, and its own tokens count.
func TestProviderAway(t *testing.T) {
	p := startProvider(t)
	p.away.Store(true)
	b := startBroker(t, p)
	b.refuses("while it is away", p.sign(t, nil), 503, "cannot be asked")
	if code, said := b.fails("login", "--addr", b.url); code != 1 || !strings.Contains(said, "ask the identity provider") {
		t.Errorf("exit %d, %s", code, said)
	}
	if out := b.run("whoami", "--addr", b.url, "--token-file", filepath.Join(b.dir, "data", "token")); !strings.Contains(out, "operator") {
		t.Error(out)
	}
	p.away.Store(false)
	b.await("it is back", func() error {
		if got := b.ask(p.sign(t, nil)); got.Status != 200 {
			return errors.New(got.Detail)
		}
		return nil
	})
}

// What a token has opened ends with it: 60 s after its exp, for the clocks.
func TestStreamsEndWithTheToken(t *testing.T) {
	p := startProvider(t)
	b := startBroker(t, p)
	end := time.Now().Add(-45 * time.Second)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.sign(t, map[string]any{"exp": end.Unix()}))
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	if _, err = io.Copy(io.Discard, res.Body); t.Context().Err() != nil {
		t.Error(err)
	}
	if now := time.Now(); now.Before(end.Add(time.Minute - 2*time.Second)) {
		t.Errorf("it ended at %s, before its token", now)
	}
}
