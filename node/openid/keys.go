package openid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// Bounds of what is asked of a provider.
const (
	maxBody    = 1 << 20          // bytes of one answer
	maxKeys    = 100              // of one provider
	askTimeout = 5 * time.Second  // for discovery and keys together
	askEvery   = 10 * time.Second // at most: unknown key IDs cause no more questions
	freshFor   = time.Hour        // then a withdrawn key is noticed
	usableFor  = 24 * time.Hour   // if the provider does not answer
)

// errNoKey reports that the provider has no such key.
var errNoKey = errors.New("no such key")

// keys are a provider's. They are fetched when the first token comes, never at the start.
type keys struct {
	issuer string
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex // held while the provider is asked: one question answers all who wait
	known   []jose.JSONWebKey
	fetched time.Time // when known was
	asked   time.Time // when the provider was asked last
	failed  error     // why that failed; nil if it did not
}

func newKeys(issuer string, now func() time.Time) *keys {
	return &keys{issuer: issuer, now: now, client: &http.Client{
		Timeout: askTimeout, Transport: bounded{http.DefaultTransport},
	}}
}

// find returns the keys that may have signed under an ID; "" may be each. The error is errNoKey, or why the provider
// could not be asked.
func (k *keys) find(id string) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.matching(id)
	age := k.now().Sub(k.fetched)
	if len(found) > 0 && age < freshFor {
		return found, nil
	}
	if k.now().Sub(k.asked) >= askEvery {
		k.refresh()
		found = k.matching(id)
		age = k.now().Sub(k.fetched)
	}
	switch {
	case len(found) > 0 && age < usableFor:
		return found, nil
	case k.failed != nil:
		return nil, k.failed
	}
	return nil, errNoKey
}

// matching returns the known keys with an ID. REQUIRES: k.mu held.
func (k *keys) matching(id string) (out []jose.JSONWebKey) {
	for _, key := range k.known {
		if id == "" || key.KeyID == id {
			out = append(out, key)
		}
	}
	return out
}

// refresh asks the provider. What was known stays if that fails. REQUIRES: k.mu held.
func (k *keys) refresh() {
	k.asked = k.now()
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	known, err := k.fetch(ctx)
	if k.failed = err; err == nil {
		k.known, k.fetched = known, k.now()
	}
}

func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, k.client), k.issuer)
	if err != nil {
		return nil, fmt.Errorf("ask the provider: %w", err)
	}
	var at struct {
		Keys string `json:"jwks_uri"`
	}
	if err = provider.Claims(&at); err != nil {
		return nil, fmt.Errorf("read the provider's description: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Keys, nil)
	if err != nil {
		return nil, fmt.Errorf("read the provider's description: %w", err)
	}
	res, err := k.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch the provider's keys: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the provider's keys: %s answers %s", at.Keys, res.Status)
	}
	return decodeKeys(res.Body)
}

// decodeKeys reads a set of keys, and passes over what does not sign or is not known.
func decodeKeys(r io.Reader) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(r).Decode(&set); err != nil {
		return nil, fmt.Errorf("read the provider's keys: %w", err)
	}
	var out []jose.JSONWebKey
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(text) != nil || !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
			continue
		}
		if len(out) < maxKeys {
			out = append(out, key)
		}
	}
	return out, nil
}

// bounded cuts answers that are too long.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = &body{io.LimitReader(res.Body, maxBody), res.Body}
	}
	return res, err
}

type body struct {
	io.Reader
	io.Closer
}
