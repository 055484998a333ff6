package tree

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestEntryRoundTrip(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for _, size := range []int{0, 1, MaxPart, MaxPart + 1, 3*MaxPart + 7} {
		batch := bytes.Repeat([]byte{7}, size)
		data, parts := EncodeEntry(at, []byte("header"), batch)
		if len(data) > MaxPart+64 {
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
		if !bytes.Equal(e.Batch, batch) {
			t.Errorf("%d bytes came back as %d", size, len(e.Batch))
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
	data, _ := EncodeEntry(time.UnixMilli(5), []byte("h"), []byte("batch"))
	f.Add(data)
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := DecodeEntry(b); err == nil && len(e.Batch)+len(e.Header) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(e.Batch))
		}
	})
}

func TestCharter(t *testing.T) {
	id := strings.Repeat("ab", 16)
	for text, want := range map[string]error{
		`{"version":2,"federation":"` + id + `","epoch":0,"lineage":"` + id + `"}`: nil,
		`{"version":3,"anything":true}`:                                            ErrVersion,
		`{"version":1,"federation":"` + id + `","epoch":0,"lineage":"` + id + `"}`: ErrVersion,
		`{"version":2,"federation":"ab","epoch":0,"lineage":"` + id + `"}`:         ErrDamaged,
		`{"version":2,"federation":"` + id + `","surprise":1}`:                     ErrDamaged,
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
		`{"version":2,"federation":"` + id + `","lineage":"` + id + `"}`, `{"term":3,"site":"a","nonce":"a/1"}`, `{"node":"ab"}`,
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
