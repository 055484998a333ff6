package files

import (
	"bytes"
	"slices"
	"testing"
)

// TestAllAndBlobs: both go through the same as Next does, and tell of a cut.
func TestAllAndBlobs(t *testing.T) {
	one, two := large("a/one", 1<<20), large("c", 5<<20)
	again := one
	again.Path = "b"
	all := []Entry{one, again, two, entry("d", "inline")}
	text := encode(t, all...)
	var got []Entry
	for e, err := range NewManifestReader(bytes.NewReader(text)).All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if !same(got, all) {
		t.Errorf("%+v", got)
	}
	blobs, err := NewManifestReader(bytes.NewReader(text)).Blobs()
	if err != nil || !slices.Equal(blobs, []Hash{one.Hash, two.Hash}) {
		t.Errorf("%v, %v", blobs, err)
	}
	for n := range text {
		var last error
		for _, err := range NewManifestReader(bytes.NewReader(text[:n])).All() {
			last = err
		}
		blobs, err = NewManifestReader(bytes.NewReader(text[:n])).Blobs()
		if last == nil || err == nil || blobs != nil {
			t.Fatalf("cut to %d bytes: %v, %v, %v", n, last, blobs, err)
		}
	}
}
