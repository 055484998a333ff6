package armor_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/identity/armor"
)

const helloText = "csk_nbswy3dps4wrihi"

func TestText(t *testing.T) {
	if got := armor.Encode("csk_", []byte("hello")); got != helloText {
		t.Errorf("Encode = %s, want %s", got, helloText)
	}
	if b, err := armor.Decode("csk_", helloText); string(b) != "hello" || err != nil {
		t.Errorf("Decode = %q, %v", b, err)
	}
}

// A chat window and a mail program may break lines, quote, and begin with a capital.
func TestCopiedText(t *testing.T) {
	half := len(helloText) / 2
	for name, text := range map[string]string{
		"line break":  helloText[:half] + "\n" + helloText[half:] + "\r\n",
		"quoted":      "`" + helloText + "`",
		"capital":     "C" + helloText[1:],
		"zero width":  helloText[:half] + "\u200b" + helloText[half:],
		"mail quotes": "> " + helloText[:half] + "\n> " + helloText[half:],
	} {
		if b, err := armor.Decode("csk_", text); string(b) != "hello" || err != nil {
			t.Errorf("%s: Decode = %q, %v", name, b, err)
		}
	}
}

func TestRefusedText(t *testing.T) {
	for _, c := range []struct {
		text string
		err  error
	}{
		{"", armor.ErrKind},
		{"127.0.0.1:7070", armor.ErrKind},
		{"csr_" + helloText[4:], armor.ErrKind},
		{strings.Repeat("x", armor.MaxText+1), armor.ErrKind},
		{"csk_", armor.ErrDamaged},
		{helloText[:len(helloText)-1], armor.ErrDamaged},
		{helloText + "a", armor.ErrDamaged},
		{helloText + "=", armor.ErrDamaged},
		{helloText[:5] + "1" + helloText[6:], armor.ErrDamaged},
	} {
		if _, err := armor.Decode("csk_", c.text); !errors.Is(err, c.err) {
			t.Errorf("Decode(%.40q) = %v, want %v", c.text, err, c.err)
		}
	}
}

// The prefix is in the checksum: a text is not taken for another kind by a wrong letter in it.
func TestEveryWrongLetterIsFound(t *testing.T) {
	for i := len("csk_"); i < len(helloText); i++ {
		for _, letter := range "abcdefghijklmnopqrstuvwxyz234567" {
			text := helloText[:i] + string(letter) + helloText[i+1:]
			if _, err := armor.Decode("csk_", text); (err == nil) != (text == helloText) {
				t.Fatalf("letter %d as %c: %v", i, letter, err)
			}
		}
	}
}

// Whatever is accepted is written as it was read.
func FuzzDecode(f *testing.F) {
	f.Add(helloText)
	f.Add("csk_")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := armor.Decode("csk_", text)
		if err != nil {
			return
		}
		if again, err := armor.Decode("csk_", armor.Encode("csk_", b)); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x, %v; want %x", again, err, b)
		}
	})
}
