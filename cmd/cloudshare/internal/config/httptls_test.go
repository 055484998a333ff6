package config

import (
	"strings"
	"testing"
)

// TestWhoIsShownACertificate: plain HTTP stays on loopback, unless somebody says otherwise.
func TestWhoIsShownACertificate(t *testing.T) {
	for _, tc := range []struct {
		http, cert string
		insecure   bool
		selfMade   bool
	}{
		{"127.0.0.1:7700", "", false, false},
		{"localhost:7700", "", false, false},
		{"[::1]:7700", "", false, false},
		{"0.0.0.0:7700", "", false, true},
		{":7700", "", false, true},
		{"10.0.0.9:7700", "", false, true},
		{"broker.lan:7700", "", false, true},
		{"0.0.0.0:7700", "", true, false},
		{"0.0.0.0:7700", "cert.pem", false, false},
	} {
		c := Default()
		c.Site, c.HTTP, c.HTTPTLSCert, c.HTTPTLSKey, c.Insecure = "a", tc.http, tc.cert, tc.cert, tc.insecure
		if err := c.Validate(); err != nil || c.SelfMadeTLS() != tc.selfMade {
			t.Errorf("%+v: %v, %v", tc, c.SelfMadeTLS(), err)
		}
	}
	c := Default()
	c.Site, c.HTTPTLSCert = "a", "cert.pem"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "http_tls_key") {
		t.Errorf("a certificate without a key: %v", err)
	}
}
