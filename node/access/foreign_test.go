package access

import (
	"errors"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/identity/armor"
)

// Another site's token, and a wrong secret under the ID of a token that is known, are refused alike: by one comparison
// in constant time, so that neither answer nor time tells which IDs there are.
func TestTokensOfAnotherSite(t *testing.T) {
	here, there := open(t), open(t)
	_, known := create(t, here, User, time.Time{})
	foreign, other := create(t, there, Operator, time.Time{})
	secret := foreign[len(Prefix)+idLetters : bodyLetters]
	for what, text := range map[string]string{
		"another site's":       foreign,
		"a known ID":           armor.Encode(Prefix+known.ID+secret, nil),
		"an ID of the foreign": armor.Encode(Prefix+other.ID+secret, nil),
	} {
		if token, err := here.Find(text); !errors.Is(err, ErrUnknown) || token.ID != "" {
			t.Errorf("%s: %+v, %v", what, token, err)
		}
	}
	if used := here.List()[0].Used; !used.IsZero() {
		t.Errorf("a wrong secret counts as a use at %v", used)
	}
}
