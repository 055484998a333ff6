package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestKept: each round of one is compared with the same round of the other.
func TestKept(t *testing.T) {
	first := &bearer{name: "first", rates: []float64{100, 50, 200}, costs: []float64{1, 2, 4}}
	other := &bearer{name: "other", beside: first, rates: []float64{90, 50, 220}, costs: []float64{2, 2, 2}}
	l := userLoad{name: "singles"}
	for _, c := range []struct{ got, want []string }{
		{first.row(l), []string{"singles", "first", "2.000", "-", "-", "-", "-"}},
		{other.row(l), []string{"singles", "other", "2.000", "first", "2.000", "0.997 ± 0.058", "1.000 ± 0.400"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// TestIssuerSigns: its tokens are signed by the key that it shows, each for a user of its own.
func TestIssuerSigns(t *testing.T) {
	i, err := startIssuer()
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	res, err := http.Get(i.server.URL + "/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var shown jose.JSONWebKeySet
	err = json.NewDecoder(res.Body).Decode(&shown)
	if err != nil || len(shown.Keys) != 1 || !shown.Keys[0].IsPublic() {
		t.Fatalf("it shows %v, %v", shown, err)
	}
	authorize, err := i.byUsers(2)
	if err != nil {
		t.Fatal(err)
	}
	for c, user := range []string{"sso-user-0", "sso-user-1"} {
		h := http.Header{}
		authorize(c, h)
		text := h.Get("Authorization")[len("Bearer "):]
		signed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		var claims struct {
			User string `json:"preferred_username"`
		}
		payload, err := signed.Verify(shown.Keys[0])
		if err == nil {
			err = json.Unmarshal(payload, &claims)
		}
		if err != nil || claims.User != user {
			t.Errorf("client %d: %q, %v", c, claims.User, err)
		}
	}
}
