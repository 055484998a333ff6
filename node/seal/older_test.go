package seal

import (
	"errors"
	"testing"
)

// A site that has replaced its secret seals with the new one, and opens what was sealed with those of before, as long
// as it has them: the payload itself says with which.
func TestReplacedSecretStillOpens(t *testing.T) {
	whose := Whose{Federation: [16]byte{1}, Site: "a"}
	secrets := []Secret{{1}, {2}, {3}}
	s := NewOf(secrets, whose)
	public, text := []byte(`{"image":"i"}`), []byte(`{"name":"n"}`)
	for n, secret := range secrets {
		payload := New(secret, whose).Seal(public, text)
		_, got, err := s.Open(payload)
		if err != nil || string(got) != string(text) {
			t.Errorf("secret %d: %q, %v", n, got, err)
		}
		if place, err := s.Place(payload); err != nil || place != n {
			t.Errorf("secret %d: place %d, %v", n, place, err)
		}
		if n == 0 {
			continue
		}
		if _, err := NewOf(secrets[:n], whose).Key(payload); !errors.Is(err, ErrOtherSecret) {
			t.Errorf("secret %d, forgotten: %v", n, err)
		}
	}
	if place, err := s.Place(s.Seal(public, text)); err != nil || place != 0 {
		t.Errorf("it seals with %d, %v", place, err)
	}
	if _, err := s.Place(New(Secret{9}, whose).Seal(public, text)); !errors.Is(err, ErrOtherSecret) {
		t.Errorf("of nobody: %v", err)
	}
	if _, err := s.Place(public); !errors.Is(err, ErrNotSealed) {
		t.Errorf("not sealed: %v", err)
	}
}
