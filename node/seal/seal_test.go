package seal

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	whose = Whose{Federation: [16]byte{1}, Site: "a"}
	texts = rapid.Map(rapid.StringMatching(`\{[ -~]{0,80}\}`), func(s string) []byte { return []byte(s) })
)

// What is sealed is opened by its owner, and by whoever has its key; equal texts give equal payloads, others give
// others.
func TestRoundTrip(t *testing.T) {
	s := New(Secret{7}, whose)
	rapid.Check(t, func(t *rapid.T) {
		public, text := texts.Draw(t, "public"), rapid.SliceOf(rapid.Byte()).Draw(t, "text")
		payload := s.Seal(public, text)
		if len(payload) != len(public)+len(text)+Overhead {
			t.Fatalf("%d bytes", len(payload))
		}
		if !bytes.Equal(payload, s.Seal(public, text)) {
			t.Fatal("sealed twice, it differs")
		}
		if got := Public(payload); !bytes.Equal(got, public) {
			t.Fatalf("public: %q", got)
		}
		_, own, err := s.Open(payload)
		if err != nil || !bytes.Equal(own, text) {
			t.Fatalf("the owner reads %q: %v", own, err)
		}
		key, err := s.Key(payload)
		if err != nil {
			t.Fatal(err)
		}
		mark, err := MarkOf(payload)
		if err != nil || !key.Opens(mark) {
			t.Fatalf("the mark is another key's: %v", err)
		}
		read, err := whose.Open(payload, key)
		if err != nil || !bytes.Equal(read, text) {
			t.Fatalf("who has the key reads %q: %v", read, err)
		}
		other := s.Seal(public, append(text, 'x'))
		if otherKey, err := s.Key(other); err != nil || otherKey == key {
			t.Fatalf("another text has the same key: %v", err)
		}
		if len(text) >= 8 && bytes.Contains(payload, text) {
			t.Fatal("the text stands in the payload")
		}
	})
}

// A payload of which a byte was changed is not opened, with no key that anybody has.
func TestChangedPayloadIsRefused(t *testing.T) {
	s := New(Secret{7}, whose)
	payload := s.Seal([]byte(`{"image":"x"}`), []byte(`{"command":["secret"]}`))
	key, err := s.Key(payload)
	if err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		changed := bytes.Clone(payload)
		changed[i] ^= 1
		if _, err := whose.Open(changed, key); err == nil {
			t.Errorf("byte %d may be changed", i)
		}
		if _, _, err := s.Open(changed); err == nil {
			t.Errorf("byte %d may be changed, says its owner", i)
		}
	}
	for n := range payload {
		if _, err := whose.Open(payload[:n], key); err == nil {
			t.Errorf("%d bytes of %d are enough", n, len(payload))
		}
	}
}

// A payload is one federation's and one site's; another secret does not make its key.
func TestPayloadIsOfOneSite(t *testing.T) {
	s := New(Secret{7}, whose)
	payload := s.Seal([]byte("{}"), []byte("text"))
	key, err := s.Key(payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []Whose{
		{Federation: [16]byte{2}, Site: "a"}, {Federation: [16]byte{1}, Site: "b"}, {Federation: [16]byte{1}, Site: "aa"},
	} {
		if _, err := other.Open(payload, key); !errors.Is(err, ErrOtherKey) {
			t.Errorf("opened for %v: %v", other, err)
		}
		if bytes.Equal(New(Secret{7}, other).Seal([]byte("{}"), []byte("text")), payload) {
			t.Errorf("%v has the same payload", other)
		}
	}
	if _, err := New(Secret{8}, whose).Key(payload); !errors.Is(err, ErrOtherSecret) {
		t.Errorf("another secret has its key: %v", err)
	}
	key[0]++
	if _, err := whose.Open(payload, key); !errors.Is(err, ErrOtherKey) {
		t.Errorf("another key opens it: %v", err)
	}
}

// What is public is bound, too: an image cannot be put beside another's command.
func TestPublicTextIsBound(t *testing.T) {
	s := New(Secret{7}, whose)
	payload := s.Seal([]byte(`{"image":"x"}`), []byte("text"))
	key, _ := s.Key(payload)
	forged := bytes.Replace(payload, []byte(`"x"`), []byte(`"y"`), 1)
	if _, err := whose.Open(forged, key); !errors.Is(err, ErrOtherKey) {
		t.Errorf("opened beside another image: %v", err)
	}
}

// Foreign bytes are read without harm.
func FuzzParse(f *testing.F) {
	s := New(Secret{7}, whose)
	f.Add(s.Seal([]byte("{}"), []byte("text")))
	f.Add([]byte(strings.Repeat("\x01", Overhead)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		public := Public(payload)
		if !bytes.HasPrefix(payload, public) {
			t.Fatal("the public part is not its beginning")
		}
		if _, text, err := s.Open(payload); err == nil && !bytes.Equal(s.Seal(public, text), payload) {
			t.Fatal("opened, but not what this site has sealed")
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s := New(Secret{7}, whose)
	public, text := []byte("{}"), []byte(`{"command":["sh","-c","exec ./render --frame $CLOUDSHARE_TASK"],"env":{"SCENE":"forest"}}`)
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Seal(public, text)
		}
	})
	payload := s.Seal(public, text)
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := s.Open(payload); err != nil {
				b.Fatal(err)
			}
		}
	})
}
