package outward

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

var errRefused = errors.New("not asked")

// TestHosts: those that are named, at the ports that are named, and no address that only some reach.
func TestHosts(t *testing.T) {
	r := Rules{
		Hosts:   []string{"Data.example.org", "*.pub.example.org", "odd.example.org:8443", "10.0.0.1", "[::1]"},
		Refused: errRefused, HostsKey: "x.hosts", PrivateKey: "x.private",
	}
	for text, why := range map[string]string{
		"https://data.example.org/a": "", "https://DATA.example.org:443/": "", "https://a.b.pub.example.org/": "",
		"https://odd.example.org:8443/": "", "https://odd.example.org/": "x.hosts", "https://pub.example.org/": "x.hosts",
		"https://data.example.org:8443/": "x.hosts", "https://data.example.org.evil.org/": "x.hosts",
		"https://data.example.org./": "x.hosts", "https://10.0.0.1/": "x.private", "https://[::1]/": "x.private",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		err = r.CheckHost(u)
		refused := errors.Is(err, errRefused) && strings.Contains(err.Error(), why)
		if why == "" && err != nil || why != "" && !refused {
			t.Errorf("%s: %v, want %q", text, err, why)
		}
	}
	r.Private = true
	if err := r.CheckHost(&url.URL{Host: "10.0.0.1"}); err != nil {
		t.Errorf("a private address that is allowed: %v", err)
	}
}
