package openid

import (
	"crypto/ecdsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/access"
)

// What a token has opened ends with the key that signed it: within the hour, as the token itself.
func TestWithdrawnKeyEndsSessions(t *testing.T) {
	f := newFixture(t)
	late := f.token(t, map[string]any{"exp": f.now.Add(72 * time.Hour).Unix()})
	got, err := f.tokens.Find(late)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the key is there
		f.now = f.now.Add(freshFor)
		if again, err := f.tokens.ByID(got.ID); err != nil || again.User != "alice" {
			t.Fatalf("%+v, %v", again, err)
		}
	}
	f.away.Store(true)
	f.now = f.now.Add(usableFor - 1)
	if _, err = f.tokens.ByID(got.ID); err != nil {
		t.Errorf("the provider is away: %v", err)
	}
	f.now = f.now.Add(lookEvery)
	if _, err = f.tokens.ByID(got.ID); !refusedFor(err, access.Away, "cannot be asked") {
		t.Errorf("away for a day: %v", err)
	}
	f.away.Store(false)
	f.shows("a", newKey(t).Public()) // another key of the same name
	f.now = f.now.Add(askEvery)
	if _, err = f.tokens.ByID(got.ID); !errors.Is(err, access.ErrExpired) {
		t.Errorf("withdrawn: %v", err)
	}
	if _, err = f.tokens.Find(late); !refusedFor(err, access.Unproven, "wrong") {
		t.Errorf("withdrawn: %v", err)
	}
}

// The hour counts from when the keys were fetched, not from when a token came.
func TestWithdrawnKeyOfALaterToken(t *testing.T) {
	f := newFixture(t)
	if _, err := f.tokens.Find(f.token(t, nil)); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(freshFor - 1)
	got, err := f.tokens.Find(f.token(t, map[string]any{"sub": "2"}))
	if err != nil {
		t.Fatal(err)
	}
	f.shows("b", newKey(t).Public())
	f.now = f.now.Add(lookEvery)
	if _, err = f.tokens.ByID(got.ID); !errors.Is(err, access.ErrExpired) {
		t.Error(err)
	}
}

// One token has one text, and other signatures of it have its ID: nobody fills the memory with it.
func TestOneTokenIsRememberedOnce(t *testing.T) {
	f := newFixture(t)
	text := f.token(t, nil)
	got, err := f.tokens.Find(text)
	if err != nil {
		t.Fatal(err)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	end := len(text) - 1
	others := []string{text[:end] + "\n" + text[end:], text[:end] + "\r" + text[end:], text[:9] + "\n" + text[9:], text + "=", text + "."}
	for _, c := range letters {
		if other := text[:end] + string(c); other != text {
			others = append(others, other)
		}
	}
	for _, other := range others {
		if _, err = f.tokens.Find(other); err == nil {
			t.Errorf("%q is taken", other[end-3:])
		}
	}
	again, err := f.tokens.Find(mirrored(t, text, &f.key.PublicKey))
	if err != nil || again.ID != got.ID || len(f.tokens.verified.byID) != 1 {
		t.Errorf("%+v, %v, %d", again, err, len(f.tokens.verified.byID))
	}
}

// mirrored returns a token with the other signature that holds by ECDSA: (r, -s).
func mirrored(t *testing.T, text string, key *ecdsa.PublicKey) string {
	t.Helper()
	dot := strings.LastIndexByte(text, '.')
	sig, err := base64.RawURLEncoding.DecodeString(text[dot+1:])
	if err != nil {
		t.Fatal(err)
	}
	s := new(big.Int).SetBytes(sig[32:])
	s.Sub(key.Params().N, s).FillBytes(sig[32:])
	return text[:dot+1] + base64.RawURLEncoding.EncodeToString(sig)
}

// Whoever has many tokens displaces his own.
func TestVerifiedTokensAreBounded(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	m := newMemory(func() time.Time { return now })
	add := func(user string, n int) {
		for i := range n {
			ends := now.Add(time.Hour + time.Duration(i))
			m.add(verified{token: access.Token{ID: fmt.Sprint(user, i), User: user, Expires: ends}})
		}
	}
	add("victim", 1)
	add("evil", maxOfUser+3)
	if _, first := m.get("evil2"); m.of["evil"] != maxOfUser || first {
		t.Errorf("%d of one user", m.of["evil"])
	}
	for i := range maxVerified/maxOfUser - 1 {
		add(fmt.Sprint("evil-", i, "-"), maxOfUser)
	}
	add("bob", 9) // beyond maxVerified
	if _, ok := m.get("victim0"); !ok || len(m.byID) != maxVerified {
		t.Errorf("%d, of them the victim's: %t", len(m.byID), ok)
	}
	now = now.Add(2 * time.Hour)
	add("alice", 1)
	if len(m.byID) != 1 || len(m.of) != 1 {
		t.Errorf("%d of %d users stay of expired ones", len(m.byID), len(m.of))
	}
}
