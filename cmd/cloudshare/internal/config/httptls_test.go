package config

import (
	"strings"
	"testing"
)

// TestPlainHTTPStaysOnLoopback, unless somebody says otherwise.
func TestPlainHTTPStaysOnLoopback(t *testing.T) {
	for _, http := range []string{
		"127.0.0.1:7700", "localhost:7700", "[::1]:7700", "0.0.0.0:7700", ":7700", "10.0.0.9:7700", "broker.lan:7700",
	} {
		loopback := strings.Contains(http, "127.") || strings.Contains(http, "localhost") || strings.Contains(http, "::1")
		for name, tc := range map[string]struct {
			edit  func(*Config)
			wants bool
		}{
			"nothing":   {func(*Config) {}, loopback},
			"insecure":  {func(c *Config) { c.Insecure = true }, true},
			"files":     {func(c *Config) { c.HTTPTLSCert, c.HTTPTLSKey = "cert.pem", "key.pem" }, true},
			"self-made": {func(c *Config) { c.HTTPTLSSelfMade = true }, true},
		} {
			c := Default()
			c.Site, c.HTTP = "a", http
			tc.edit(&c)
			if err := c.Validate(); (err == nil) != tc.wants || err != nil && !strings.Contains(err.Error(), "--http-tls-self-made") {
				t.Errorf("%s, %s: %v", http, name, err)
			}
		}
	}
}

func TestOneCertificate(t *testing.T) {
	for want, edit := range map[string]func(*Config){
		"http_tls_key":       func(c *Config) { c.HTTPTLSCert = "cert.pem" },
		"http_tls_self_made": func(c *Config) { c.HTTPTLSCert, c.HTTPTLSKey, c.HTTPTLSSelfMade = "cert.pem", "key.pem", true },
	} {
		c := Default()
		c.Site = "a"
		edit(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
