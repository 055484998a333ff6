package openid

import (
	"encoding/base64"
	"testing"
)

// A token says when it ends, whoever has signed it.
func TestExpiry(t *testing.T) {
	jwt := func(claims string) string {
		return "eyJ." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	}
	if got, err := ReadUnproven(jwt(`{"exp":1800000000.5}`)); err != nil || got.Expires.Unix() != 1800000000 {
		t.Error(got, err)
	}
	for _, text := range []string{"", "a.b.c", jwt("{}"), jwt(`{"exp":1e300}`), jwt(`{"exp":"x"}`)} {
		if _, err := ReadUnproven(text); err == nil {
			t.Errorf("%s: taken", text)
		}
	}
}
