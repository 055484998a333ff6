package openid

import (
	"context"
	"crypto"
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
	lookEvery  = time.Minute      // at most: for the key of a verified token, if the provider does not answer
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

	asking sync.Mutex // held while the provider is asked: one question answers all who wait for it

	mu      sync.Mutex
	known   []jose.JSONWebKey // guarded by mu
	fetched time.Time         // when known was; guarded by mu
	asked   time.Time         // when the provider was asked last; guarded by mu
	failed  error             // why that failed; nil if it did not; guarded by mu
}

func newKeys(issuer string, now func() time.Time) *keys {
	return &keys{issuer: issuer, now: now, client: &http.Client{
		Timeout: askTimeout, Transport: bounded{http.DefaultTransport}, CheckRedirect: CheckRedirect,
	}}
}

// find returns the keys that may have signed under an ID; "" may be each. The error is errNoKey, or why the provider
// could not be asked. Whoever brings a key that is known does not wait for the provider's answer about another.
func (k *keys) find(id string) ([]jose.JSONWebKey, error) {
	if found, fresh := k.look(id); fresh {
		return found, nil
	}
	k.asking.Lock()
	defer k.asking.Unlock()
	found, fresh := k.look(id) // somebody else may have asked meanwhile
	if fresh {
		return found, nil
	}
	k.refresh()
	found, _ = k.look(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case len(found) > 0:
		return found, nil
	case k.failed != nil:
		return nil, k.failed
	}
	return nil, errNoKey
}

// signer is the key that made a signature.
type signer struct {
	id    string // as the token names it
	thumb string // SHA-256 of the key (RFC 7638)
}

func signerOf(id string, key jose.JSONWebKey) (signer, error) {
	thumb, err := key.Thumbprint(crypto.SHA256)
	return signer{id, string(thumb)}, err
}

// has returns nil if the provider still has a key; errNoKey, or why the provider could not be asked.
func (k *keys) has(s signer) error {
	found, err := k.find(s.id)
	if err != nil {
		return err
	}
	for _, key := range found {
		if other, err := signerOf(s.id, key); err == nil && other == s {
			return nil
		}
	}
	return errNoKey
}

// staleAt returns when a key that is known now is to be looked for again.
func (k *keys) staleAt() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, soon := k.fetched.Add(freshFor), k.now().Add(lookEvery)
	if at.Before(soon) {
		return soon
	}
	return at
}

// look returns the keys with an ID that may be used, and reports whether there are some that need not be asked for.
func (k *keys) look(id string) (found []jose.JSONWebKey, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.now().Sub(k.fetched)
	if age < usableFor {
		found = k.matching(id)
	}
	return found, len(found) > 0 && age < freshFor
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

// refresh asks the provider, unless that was done just now. What was known stays if it fails. REQUIRES: k.asking held.
func (k *keys) refresh() {
	if !k.due() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	known, err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err == nil {
		k.known, k.fetched = known, k.now()
	}
}

// due reports whether the provider may be asked, and notes that it is.
func (k *keys) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now().Sub(k.asked) < askEvery {
		return false
	}
	k.asked = k.now()
	return true
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
	if err = CheckEndpoint("jwks_uri", at.Keys); err != nil {
		return nil, err
	}
	return k.fetchFrom(ctx, at.Keys)
}

func (k *keys) fetchFrom(ctx context.Context, address string) ([]jose.JSONWebKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("read the provider's description: %w", err)
	}
	res, err := k.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch the provider's keys: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the provider's keys: %s answers %s", address, res.Status)
	}
	return decodeKeys(res.Body)
}

// decodeKeys reads a set of keys, and passes over what does not sign or is not known. A set without any is an error, so
// that it does not take the place of keys that are known: no provider that works has none.
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
	if len(out) == 0 {
		return nil, errors.New("the provider shows no key that can be used")
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
