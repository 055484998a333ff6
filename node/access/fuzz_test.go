package access

import (
	"crypto/sha256"
	"testing"

	"github.com/cloudshare/cloudshare/node/identity/armor"
)

// Whatever is taken for a token is one that newText could have made, and nothing makes it fail otherwise.
func FuzzParse(f *testing.F) {
	_, text := newText()
	f.Add(text)
	f.Add(text[:40])
	f.Add("cst_aaaaaaaa_" + text)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, hash, err := parse(text)
		if err != nil {
			return
		}
		clean := armor.Clean(text)
		if len(clean) != textLetters || clean[len(Prefix):len(Prefix)+idLetters] != id {
			t.Fatalf("%q is taken for a token", text)
		}
		if hash != sha256.Sum256([]byte(clean)) {
			t.Fatal("the hash is of another text")
		}
	})
}
