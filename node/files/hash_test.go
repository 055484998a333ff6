package files

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestHashText(t *testing.T) {
	// printf abc | sha256sum
	const text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	h := HashOf([]byte("abc"))
	if h.String() != text {
		t.Errorf("hash of abc: %s", h)
	}
	if parsed, err := ParseHash(text); err != nil || parsed != h {
		t.Errorf("parsed: %s, %v", parsed, err)
	}
	for _, bad := range []string{"", text[1:], text + "0", strings.ToUpper(text), strings.Repeat("g", 64), text[1:] + "\n"} {
		if parsed, err := ParseHash(bad); !errors.Is(err, ErrHash) || parsed != (Hash{}) {
			t.Errorf("%q: %s, %v", bad, parsed, err)
		}
	}
}

func TestBlobJSON(t *testing.T) {
	b := BlobOf([]byte("abc"))
	text, err := json.Marshal(b)
	const want = `{"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":3}`
	if err != nil || string(text) != want {
		t.Fatalf("%s, %v", text, err)
	}
	var back Blob
	if err = json.Unmarshal(text, &back); err != nil || back != b {
		t.Errorf("back: %v, %v", back, err)
	}
	if err = json.Unmarshal([]byte(`{"sha256":"BA","size":3}`), &back); !errors.Is(err, ErrHash) {
		t.Errorf("a short hash: %v", err)
	}
	for size, bad := range map[int64]bool{-1: true, 0: false, MaxFile: false, MaxFile + 1: true} {
		if err = (Blob{Size: size}).Check(); errors.Is(err, ErrSize) != bad {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
