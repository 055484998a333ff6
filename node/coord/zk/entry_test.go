package zk

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestEntryRoundTrip(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for _, size := range []int{0, 1, maxPart, maxPart + 1, 3*maxPart + 7} {
		batch := bytes.Repeat([]byte{7}, size)
		data, parts := encodeEntry(at, []byte("header"), batch)
		if len(data) > maxPart+64 {
			t.Errorf("a batch of %d bytes makes a request of %d", size, len(data))
		}
		e, err := decodeEntry(data)
		if err != nil || e.parts != len(parts) || !e.at.Equal(at) || string(e.header) != "header" {
			t.Fatalf("%d bytes: %+v, %v", size, e, err)
		}
		if len(parts) > 0 {
			if err := e.check(data, parts); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
			parts[0] = bytes.Clone(parts[0])
			parts[0][3]++
			if err := e.check(data, parts); !errors.Is(err, errEntry) {
				t.Errorf("a changed part: %v", err)
			}
			continue
		}
		if !bytes.Equal(e.batch, batch) {
			t.Errorf("%d bytes came back as %d", size, len(e.batch))
		}
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 0x40
			if size > 1 && i > 40 {
				break
			}
			if _, err := decodeEntry(bad); !errors.Is(err, errEntry) {
				t.Errorf("byte %d changed: %v", i, err)
			}
		}
	}
}

func FuzzEntry(f *testing.F) {
	data, _ := encodeEntry(time.UnixMilli(5), []byte("h"), []byte("batch"))
	f.Add(data)
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEntry(b); err == nil && len(e.batch)+len(e.header) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(e.batch))
		}
	})
}

func TestParsePlace(t *testing.T) {
	p, err := ParsePlace("a:1,b:2/x/y/")
	if err != nil || len(p.Servers) != 2 || p.Chroot != "/x/y" || p.String() != "a:1,b:2/x/y" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "a", "a:1,", "a:1//x", "a:1/..", "a:1/zookeeper", "a:1/b c", ":1", "a:"} {
		if _, err := ParsePlace(bad); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCredentialsAreNeeded(t *testing.T) {
	p := Place{Servers: []string{"a:1"}}
	if err := p.checkAccess(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("without any: %v", err)
	}
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
		if _, err := parseCharter("/x/federation", []byte(text)); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "/x/federation") {
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
		`{"entry":9,"term":1,"bytes":5,"sums":[1,2]}`, number(7) + ".3", `null`, `{"entry":-1}`, `[]`, `{}x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const path = "/x/znode"
		errs := []error{}
		for _, into := range []any{new(leading), new(enlisted), new(pointer)} {
			errs = append(errs, parse(path, b, into))
		}
		_, err := parseCharter(path, b)
		for _, err := range append(errs, err) {
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%q: %v", b, err)
			}
		}
		if n, err := parseNumber(string(b)); err == nil && !strings.HasPrefix(string(b), number(n)) {
			t.Errorf("%q is read as %d", b, n)
		}
	})
}
