package identity_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/identity"
)

// exampleKey has the seed 00 01 02 … 1f.
func exampleKey() identity.Key {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(i)
	}
	return identity.FromSeed(seed)
}

// What stands in states, files and messages must never change.
func TestKeyGolden(t *testing.T) {
	key := exampleKey()
	node := key.Public().Node()
	got := fmt.Sprintf("key    %s\nnode   %x\nsigned %x\n", key.Public(), node, key.Sign("test 1", []byte("a"), []byte("bc")))
	const want = `key    csk_aoqqpp7tzyil4hlq3umoos6atft6jvrqtosq2xy53sdgiesvgg4b6mytze
node   55c3564a87cadbc53c8c392a83603708
signed 6b1ce8b0d55fe2c4d0b2cb80f8cad066ec4d7ba48653ea26cd956002bfc94fe31b1aba7bc369370c53fba523c01f3146ff742edb21501d179543bd92e159690c
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if hex.EncodeToString(node[:]) != fmt.Sprintf("%x", node) {
		t.Errorf("node %x", node)
	}
}

func TestPublicText(t *testing.T) {
	want := exampleKey().Public()
	if got, err := identity.ParsePublic("\"" + strings.ToUpper(want.String()) + "\"\n"); got != want || err != nil {
		t.Errorf("ParsePublic = %s, %v", got, err)
	}
	for _, text := range []string{"", "csk_", want.String()[1:], want.String()[:40], "csr_" + want.String()[4:], "csk_aaaaaaaa"} {
		if _, err := identity.ParsePublic(text); !errors.Is(err, identity.ErrNoKey) {
			t.Errorf("ParsePublic(%q): %v", text, err)
		}
	}
}

// A signature holds for its key, its purpose and exactly its parts, wherever they are cut.
func TestSignature(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, other := identity.Generate(), identity.Generate()
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 5), 0, 3).Draw(t, "parts")
		also := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 5), 0, 3).Draw(t, "other parts")
		purpose := rapid.SampledFrom([]string{"", "a", "ab"}).Draw(t, "purpose")
		sig := key.Sign("a", parts...)
		if !key.Public().Verify(sig, "a", parts...) || other.Public().Verify(sig, "a", parts...) {
			t.Fatal("not the key's signature")
		}
		if key.Public().Verify(sig, purpose, parts...) != (purpose == "a") {
			t.Fatalf("signed for a, holds for %q", purpose)
		}
		if key.Public().Verify(sig, "a", also...) != equal(parts, also) {
			t.Fatalf("signed %q, holds for %q", parts, also)
		}
		if key.Public().Verify(sig[:63], "a", parts...) || key.Public().Verify(nil, "a", parts...) {
			t.Fatal("a part of a signature holds")
		}
	})
}

func equal(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Nothing that logs or prints a key shows its secret half.
func TestKeyIsNotPrinted(t *testing.T) {
	key := exampleKey()
	secret := "000102030405"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, what := range []any{key, &key, struct{ K identity.Key }{key}} {
			if text := fmt.Sprintf(verb, what); strings.Contains(text, secret) || strings.Contains(text, "0 1 2 3") {
				t.Errorf("%s of %T prints the secret: %s", verb, what, text)
			}
		}
	}
	if text := fmt.Sprint(identity.Key{}); text != "no key" {
		t.Errorf("the zero Key prints %q", text)
	}
}

func TestRecoveryText(t *testing.T) {
	key, text := identity.NewRecovery()
	got, err := identity.ParseRecovery(text[:20] + "\n" + text[20:])
	if err != nil || got.Public() != key.Public() {
		t.Errorf("ParseRecovery = %v, %v", got, err)
	}
	for _, bad := range []string{"", text[:len(text)-2], "csk_" + text[4:], "csr_aaaaaaaa"} {
		_, err = identity.ParseRecovery(bad)
		if !errors.Is(err, identity.ErrNoRecovery) || strings.Contains(err.Error(), text[10:20]) {
			t.Errorf("ParseRecovery(%.6s…): %v", bad, err)
		}
	}
}

func FuzzParsePublic(f *testing.F) {
	f.Add(exampleKey().Public().String())
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := identity.ParsePublic(text); err == nil {
			if again, err := identity.ParsePublic(p.String()); again != p || err != nil {
				t.Fatalf("%s: %v", p, err)
			}
		}
	})
}
