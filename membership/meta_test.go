package membership

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestMetaRoundTrip(t *testing.T) {
	long := strings.Repeat("a", MaxAddress-6) + ":65535"
	for _, m := range []meta{
		{},
		{Meta: Meta{HTTP: "h:1", Peer: "[::1]:2"}, federation: [16]byte{1, 2}, incarnation: 300, leaving: true},
		{Meta: Meta{HTTP: long}, incarnation: 1<<64 - 1},
	} {
		got, err := decodeMeta(m.encode())
		if err != nil || got != m {
			t.Errorf("%+v came back as %+v, %v", m, got, err)
		}
	}
	if err := (Meta{HTTP: long, Peer: long}).validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("metadata that does not fit: %v", err)
	}
	if err := (Meta{HTTP: "a" + long}).validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("an address that is too long: %v", err)
	}
}

func TestMetaIsStrict(t *testing.T) {
	good := meta{Meta: Meta{HTTP: "host:1", Peer: "peer:2"}, incarnation: 5}
	b := good.encode()
	edit := func(f func([]byte) []byte) []byte { return f(bytes.Clone(b)) }
	for name, bad := range map[string][]byte{
		"empty":         nil,
		"version":       edit(func(b []byte) []byte { b[0] = 2; return b }),
		"flags":         edit(func(b []byte) []byte { b[1] = 2; return b }),
		"trailing":      append(bytes.Clone(b), 0),
		"too long":      bytes.Repeat([]byte{1}, MaxMeta+1),
		"long number":   append(edit(func(b []byte) []byte { return b[:18] }), 0x85, 0, 0, 0),
		"endless":       append(edit(func(b []byte) []byte { return b[:18] }), bytes.Repeat([]byte{255}, 20)...),
		"length":        edit(func(b []byte) []byte { b[19] = 200; return b }),
		"control":       edit(func(b []byte) []byte { b[20] = '\n'; return b }),
		"no port":       edit(func(b []byte) []byte { b[24] = 'x'; return b }),
		"port 0":        edit(func(b []byte) []byte { b[25] = '0'; return b }),
		"not ASCII":     edit(func(b []byte) []byte { b[20] = 0xff; return b }),
		"without peers": edit(func(b []byte) []byte { return b[:26] }),
	} {
		if m, err := decodeMeta(bad); !errors.Is(err, ErrMeta) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for i := range b {
		if _, err := decodeMeta(b[:i]); !errors.Is(err, ErrMeta) {
			t.Errorf("cut off at %d: %v", i, err)
		}
	}
}

// Whatever is read can be written, and comes out as the same bytes.
func FuzzDecodeMeta(f *testing.F) {
	full := meta{Meta: Meta{HTTP: "h:1", Peer: "[::1]:2"}, federation: [16]byte{1}, incarnation: 300, leaving: true}
	f.Add(full.encode())
	f.Add((&meta{}).encode())
	f.Add([]byte{metaVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			if !errors.Is(err, ErrMeta) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(m.encode(), b) {
			t.Fatalf("%x came back as %x", b, m.encode())
		}
		if err := m.validate(); err != nil {
			t.Fatal(err)
		}
	})
}
