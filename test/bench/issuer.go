package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// issuer is an identity provider as brokers see one: what it says of itself, its key, and tokens that it has signed. A
// real one, which `make test-oidc` runs, is asked for no more, and once an hour.
type issuer struct {
	server *httptest.Server
	key    jose.JSONWebKey
}

// audience is for whom its tokens are.
const audience = "cloudshare"

func startIssuer() (*issuer, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the provider's key: %w", err)
	}
	i := &issuer{key: jose.JSONWebKey{Key: private, KeyID: "bench", Algorithm: string(jose.ES256), Use: "sig"}}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := any(map[string]string{"issuer": i.server.URL, "jwks_uri": i.server.URL + "/keys"})
		if r.URL.Path == "/keys" {
			said = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.key.Public()}}
		}
		_ = json.NewEncoder(w).Encode(said) // whoever has gone asks again
	}))
	return i, nil
}

func (i *issuer) close() { i.server.Close() }

// environ has brokers take its tokens.
func (i *issuer) environ() []string {
	return []string{
		"CLOUDSHARE_OIDC_ISSUER=" + i.server.URL, "CLOUDSHARE_OIDC_AUDIENCE=" + audience, "CLOUDSHARE_OIDC_USERS=*",
	}
}

// byUsers makes a token for each of n clients, who are users of their own.
func (i *issuer) byUsers(n int) (func(int, http.Header), error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, nil)
	if err != nil {
		return nil, fmt.Errorf("sign as the provider: %w", err)
	}
	tokens := make([]string, n)
	for c := range tokens {
		if tokens[c], err = i.sign(signer, c); err != nil {
			return nil, fmt.Errorf("sign the token of client %d: %w", c, err)
		}
	}
	return byTokens(tokens), nil
}

// sign makes a client's token, with the claims that providers put into one.
func (i *issuer) sign(signer jose.Signer, client int) (string, error) {
	now := time.Now()
	signed, err := signer.Sign(mustJSON(map[string]any{
		"iss": i.server.URL, "aud": audience, "azp": audience, "sub": fmt.Sprint(client), "iat": now.Unix(),
		"exp": now.Add(time.Hour).Unix(), "preferred_username": "sso-" + userOf(client), "groups": []string{"physics"},
		"email": userOf(client) + "@example.org", "email_verified": true, "name": "User of the figures",
	}))
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
