package tree

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

var (
	lineage = [16]byte{7}
	secret  = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	key     = signature.Key(secret.Public().(ed25519.PublicKey))
)

func by(purpose string, parts ...[]byte) []byte {
	return ed25519.Sign(secret, signature.Message(purpose, parts...))
}

// TestSigned: what is signed counts in its own place only, and as it was written.
func TestSigned(t *testing.T) {
	at := time.UnixMilli(5)
	entry := func() *Entry { return &Entry{At: at, Header: []byte("h"), Batch: []byte("batch")} }
	for name, change := range map[string]func(*Entry){
		"date": func(e *Entry) { e.At = at.Add(time.Second) }, "header": func(e *Entry) { e.Header = []byte("g") },
		"batch": func(e *Entry) { e.Batch = []byte("other") }, "signature": func(e *Entry) { e.Signature[9] ^= 1 },
	} {
		e := entry()
		e.Sign(lineage, 9, "a", signature.Key{}, by)
		if change(e); e.IsBy(lineage, 9, key) {
			t.Errorf("another %s is signed, too", name)
		}
	}
	e := entry()
	e.Sign(lineage, 9, "a", signature.Key{}, by)
	other := e.IsBy([16]byte{8}, 9, key) || e.IsBy(lineage, 10, key) || e.IsBy(lineage, 9, signature.Key{})
	if other || !e.IsBy(lineage, 9, key) {
		t.Error("an entry is signed for another place than its own")
	}
	p, r := Pointer{Entry: 9, Sums: []Sum{SumOf([]byte("chunk"))}}, LeadRecord{Term: 4, Site: "a"}
	p.Sign(lineage, "a", by)
	r.Sign(lineage, "a", by)
	var back Pointer
	if err := Parse("", Encode(p), &back); err != nil || !back.IsBy(lineage, key) || !r.IsBy(lineage, key) {
		t.Errorf("a pointer is not as it was written: %v", err)
	}
	back.Sums[0][0] ^= 1
	r.Term++
	if back.IsBy(lineage, key) || r.IsBy(lineage, key) || (Pointer{}).IsBy(lineage, key) {
		t.Error("another pointer, or term, is signed, too")
	}
}

func TestEntryRoundTrip(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for _, size := range []int{0, 1, MaxPart, MaxPart + 1, 3*MaxPart + 7} {
		batch := bytes.Repeat([]byte{7}, size)
		written := Entry{At: at, Header: []byte("header"), Batch: batch}
		written.Sign(lineage, 7, "a", key, by)
		data, parts := written.Encode()
		if len(data) > MaxPart+192 {
			t.Errorf("a batch of %d bytes makes a request of %d", size, len(data))
		}
		e, err := DecodeEntry(data)
		if err != nil || e.Parts != len(parts) || !e.At.Equal(at) || string(e.Header) != "header" {
			t.Fatalf("%d bytes: %+v, %v", size, e, err)
		}
		if len(parts) > 0 {
			if err := e.Check(data, parts); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
			parts[0] = bytes.Clone(parts[0])
			parts[0][3]++
			if err := e.Check(data, parts); !errors.Is(err, ErrEntry) {
				t.Errorf("a changed part: %v", err)
			}
			continue
		}
		if !bytes.Equal(e.Batch, batch) || !e.IsBy(lineage, 7, key) {
			t.Errorf("%d bytes came back as %d, or unsigned", size, len(e.Batch))
		}
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 0x40
			if size > 1 && i > 40 {
				break
			}
			if _, err := DecodeEntry(bad); !errors.Is(err, ErrEntry) {
				t.Errorf("byte %d changed: %v", i, err)
			}
		}
	}
}

func FuzzEntry(f *testing.F) {
	e := Entry{At: time.UnixMilli(5), Header: []byte("h"), Batch: []byte("batch")}
	for range 2 {
		data, _ := e.Encode()
		f.Add(data)
		e.Sign(lineage, 1, "a", key, by)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := DecodeEntry(b); err == nil && len(e.Batch)+len(e.Header) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(e.Batch))
		}
	})
}

func TestCharter(t *testing.T) {
	id := strings.Repeat("ab", 16)
	for text, want := range map[string]error{
		`{"version":3,"federation":"` + id + `","epoch":0,"lineage":"` + id + `"}`: nil,
		`{"version":9,"anything":true}`:                                            ErrVersion,
		`{"version":2,"federation":"` + id + `","epoch":0,"lineage":"` + id + `"}`: ErrVersion,
		`{"version":3,"federation":"ab","epoch":0,"lineage":"` + id + `"}`:         ErrDamaged,
		`{"version":3,"federation":"` + id + `","surprise":1}`:                     ErrDamaged,
		``:        ErrTree,
		`{"a":1}`: ErrTree,
		`hello`:   ErrTree,
	} {
		if _, err := ParseCharter("/x/federation", []byte(text)); !errors.Is(err, want) || err != nil &&
			!strings.Contains(err.Error(), "/x/federation") {
			t.Errorf("%s: %v, not %v", text, err, want)
		}
	}
}

// FuzzTree gives every parser of a znode whatever it likes: an error that names the
// path, never a panic.
func FuzzTree(f *testing.F) {
	id := strings.Repeat("ab", 16)
	for _, seed := range []string{
		`{"version":3,"federation":"` + id + `","lineage":"` + id + `"}`, `{"term":3,"site":"a","nonce":"a/1"}`, `{"node":"ab"}`,
		`{"entry":9,"term":1,"bytes":5,"sums":[1,2]}`, Number(7) + ".3", `null`, `{"entry":-1}`, `[]`, `{}x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const path = "/x/znode"
		errs := []error{}
		for _, into := range []any{new(LeadRecord), new(MemberRecord), new(Pointer)} {
			errs = append(errs, Parse(path, b, into))
		}
		_, err := ParseCharter(path, b)
		for _, err := range append(errs, err) {
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%q: %v", b, err)
			}
		}
		if n, err := ParseNumber(string(b)); err == nil && !strings.HasPrefix(string(b), Number(n)) {
			t.Errorf("%q is read as %d", b, n)
		}
	})
}
