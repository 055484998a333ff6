package invitation_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/identity/armor"
	"github.com/cloudshare/cloudshare/node/invitation"
)

// example is an invitation of site lab to one address.
func example() invitation.Invitation {
	v := invitation.Invitation{Site: "lab", Addresses: []string{"broker.example.org:7070"}}
	for i := range v.Seed {
		v.Seed[i] = byte(i)
	}
	for i := range v.Federation {
		v.Federation[i], v.Inviter[i] = byte(0xf0+i), byte(0xa0+i)
	}
	return v
}

const exampleText = "csi_ahypd4xt6t27n57y7h5px7h57372bincuoskljvhvcu2vk5mvwxk6aabaibqibiga4eascqlbqgq4dyqcejbgfavcylrqgi2dmob2hq7anwgcyqbc5rhe33lmvzc4zlymfwxa3dffzxxezz2g4ydomcec5fq2"

func TestText(t *testing.T) {
	v := example()
	text, err := v.Text()
	if err != nil || text != exampleText {
		t.Errorf("Text() = %s, %v; want %s", text, err, exampleText)
	}
	got, err := invitation.Parse(exampleText)
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("Parse = %+v, %v; want %+v", got, err, v)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		text string
		err  error
	}{
		{"", invitation.ErrNoInvitation},
		{"127.0.0.1:7070", invitation.ErrNoInvitation},
		{"csk_" + exampleText[4:], invitation.ErrNoInvitation},
		{strings.Repeat("x", armor.MaxText+1), invitation.ErrNoInvitation},
		{"csi_", invitation.ErrMistyped},
		{exampleText[:len(exampleText)-1], invitation.ErrMistyped},
		{exampleText + "a", invitation.ErrMistyped},
		{exampleText + "=", invitation.ErrMistyped},
		{strings.Replace(exampleText, "b", "1", 1), invitation.ErrMistyped},
		{"csi_alypd4xt6t27n57y7h5px7h57372bincuoskljvhvcu2vk5mvwxk6aabaibqibiga4eascqlbqgq4dyqcejbgfavcylrqgi2dmob2hq7anwgcyqbc5rhe33lmvzc4zlymfwxa3dffzxxezz2g4ydomaxe5yvc", invitation.ErrVersion},
	} {
		if _, err := invitation.Parse(c.text); !errors.Is(err, c.err) {
			t.Errorf("Parse(%.40q) = %v, want %v", c.text, err, c.err)
		}
	}
}

// One wrong letter is always found, and no error shows a part of the secret.
func TestParseFindsEveryWrongLetter(t *testing.T) {
	for i := len("csi_"); i < len(exampleText); i++ {
		for _, letter := range "abcdefghijklmnopqrstuvwxyz234567" {
			text := exampleText[:i] + string(letter) + exampleText[i+1:]
			_, err := invitation.Parse(text)
			if (err == nil) != (text == exampleText) {
				t.Fatalf("letter %d as %c: %v", i, letter, err)
			}
			if err != nil && strings.Contains(err.Error(), text[i-4:i+1]) {
				t.Fatalf("letter %d as %c: the error shows the text: %v", i, letter, err)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*invitation.Invitation){
		"no federation":     func(v *invitation.Invitation) { v.Federation = [16]byte{} },
		"no inviter":        func(v *invitation.Invitation) { v.Inviter = [16]byte{} },
		"site in capitals":  func(v *invitation.Invitation) { v.Site = "Lab" },
		"no address":        func(v *invitation.Invitation) { v.Addresses = nil },
		"too many":          func(v *invitation.Invitation) { v.Addresses = make([]string, invitation.MaxAddresses+1) },
		"no port":           func(v *invitation.Invitation) { v.Addresses = []string{"example.org"} },
		"port 0":            func(v *invitation.Invitation) { v.Addresses = []string{"example.org:0"} },
		"no host":           func(v *invitation.Invitation) { v.Addresses = []string{":7070"} },
		"control character": func(v *invitation.Invitation) { v.Addresses = []string{"a\x1b[2Jb:7070"} },
		"long":              func(v *invitation.Invitation) { v.Addresses = []string{strings.Repeat("a", 255) + ":7070"} },
	} {
		v := example()
		change(&v)
		if text, err := v.Text(); !errors.Is(err, invitation.ErrInvalid) {
			t.Errorf("%s: Text() = %s, %v", name, text, err)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := func(n int, what string) []byte {
			return rapid.SliceOfN(rapid.ByteRange(1, 255), n, n).Draw(t, what)
		}
		v := invitation.Invitation{
			Site:      rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`).Draw(t, "site"),
			Addresses: rapid.SliceOfN(rapid.StringMatching(`[a-z0-9.]{1,60}:[1-9][0-9]{0,3}`), 1, 8).Draw(t, "addresses"),
		}
		copy(v.Federation[:], bytes(16, "federation"))
		copy(v.Inviter[:], bytes(16, "inviter"))
		copy(v.Seed[:], bytes(32, "seed"))
		text, err := v.Text()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := invitation.Parse(text); err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("Parse(%s) = %+v, %v; want %+v", text, got, err, v)
		}
	})
}

// Whatever is accepted is valid, and is written as it was read.
func FuzzParse(f *testing.F) {
	f.Add(exampleText)
	f.Add("csi_")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := invitation.Parse(text)
		if err != nil {
			return
		}
		if !command.ValidSite(v.Site) {
			t.Fatalf("site %q", v.Site)
		}
		again, err := v.Text()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := invitation.Parse(again); err != nil || !reflect.DeepEqual(back, v) {
			t.Fatalf("%s: %+v, %v; want %+v", again, back, err, v)
		}
	})
}
