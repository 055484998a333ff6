package command

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// signer returns a key and what signs with it.
func signer(seed byte) (key signature.Key, sign func(string, ...[]byte) []byte) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return signature.Key(private.Public().(ed25519.PublicKey)), func(purpose string, parts ...[]byte) []byte {
		return ed25519.Sign(private, signature.Message(purpose, parts...))
	}
}

// signedBatch returns the encoding of two bundles: two commands of a, and one of b.
func signedBatch(t *testing.T) []byte {
	t.Helper()
	command := func(site string, seq uint64) []byte {
		return Append(nil, Command{ID: ID{Site: site, Incarnation: 1, Seq: seq}, Body: &Leave{}})
	}
	commands := [][]byte{command("a", 1), command("a", 2), command("b", 1)}
	_, a := signer(1)
	_, b := signer(2)
	return AppendBatch(nil, 3, 7, commands, []Bundle{
		{Site: "a", Commands: 2, Signature: Sign([16]byte{9}, slices.Concat(commands[:2]...), a)},
		{Site: "b", Commands: 1, Signature: Sign([16]byte{9}, commands[2], b)},
	})
}

// A signature holds for the bytes, the federation and the key, and for nothing else, also where it was found right
// for others before.
func TestBundlesAreProvenByTheirKeys(t *testing.T) {
	batch, err := DecodeBatch(signedBatch(t))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := signer(1)
	b, _ := signer(2)
	for range 2 { // the second time it is known
		for i, key := range []signature.Key{a, b} {
			u := &batch.Bundles[i]
			if !u.IsBy([16]byte{9}, key) {
				t.Errorf("bundle of %s is not by its key", u.Site)
			}
			other := []signature.Key{b, a}[i]
			if u.IsBy([16]byte{8}, key) || u.IsBy([16]byte{9}, signature.Key{}) || u.IsBy([16]byte{9}, other) {
				t.Errorf("bundle of %s is by another key, or for another federation", u.Site)
			}
		}
	}
}

// Whatever bit of a batch is changed: none of the bundles that it touches is by its key any more.
func TestChangedBundlesAreNot(t *testing.T) {
	data := signedBatch(t)
	a, _ := signer(1)
	b, _ := signer(2)
	for i := range data {
		for bit := range 8 {
			changed := bytes.Clone(data)
			changed[i] ^= 1 << bit
			batch, err := DecodeBatch(changed)
			if err != nil || batch.Term != 3 || batch.Elapsed != 7 || len(batch.Bundles) != 2 {
				continue
			}
			if batch.Bundles[0].Site == "a" && batch.Bundles[1].Site == "b" &&
				batch.Bundles[0].IsBy([16]byte{9}, a) && batch.Bundles[1].IsBy([16]byte{9}, b) {
				t.Fatalf("bit %d of byte %d changed, and both signatures hold", bit, i)
			}
		}
	}
}

// A table of bundles that does not fit the commands makes the entry none.
func TestBundlesCoverTheCommands(t *testing.T) {
	leave := Append(nil, Command{ID: ID{Site: "a", Incarnation: 1, Seq: 1}, Body: &Leave{}})
	for _, c := range []struct {
		name    string
		bundles []Bundle
		text    string
	}{
		{"fewer", []Bundle{{Site: "a", Commands: 1}}, "2 commands, 1 in bundles"},
		{"more", []Bundle{{Site: "a", Commands: 3}}, "a bundle of 3 commands, 2 are left"},
		{"more in the second", []Bundle{{Site: "a", Commands: 1}, {Site: "b", Commands: 2}}, "a bundle of 2 commands, 1 are left"},
		{"so many that the sum is none", []Bundle{{Site: "a", Commands: 1}, {Site: "b", Commands: math.MaxInt32}}, "2147483647 commands, 1 are left"},
		{"none", []Bundle{{Site: "a", Commands: 2}, {Site: "b"}}, "a bundle of 0 commands"},
		{"no site", []Bundle{{Commands: 2}}, "no site name"},
		{"too many", make([]Bundle, MaxBundles+1), "bundles 1025 is more than 1024"},
	} {
		_, err := DecodeBatch(AppendBatch(nil, 1, 0, [][]byte{leave, leave}, c.bundles))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.name, err, c.text)
		}
	}
}

// Split finds the commands where DecodeBatch does, also those that cannot be read.
func TestSplit(t *testing.T) {
	good := Append(nil, Command{ID: specimenID, Body: &Leave{}})
	want := [][]byte{good, {3, 99, 1, 'a'}, good}
	data := AppendBatch(nil, 3, 7, want, nil)
	got, err := Split(data)
	if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("%x, %v", got, err)
	}
	if term, err := DecodeTerm(data); err != nil || term != 3 {
		t.Errorf("term %d, %v", term, err)
	}
	if _, err := Split(data[:len(data)-6]); !errors.Is(err, ErrFormat) {
		t.Errorf("cut off: %v", err)
	}
}
