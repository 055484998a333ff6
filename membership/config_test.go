package membership

import (
	"errors"
	"net"
	"testing"
)

func TestConfigValidate(t *testing.T) {
	good := Config{Site: "site-1", Federation: testFederation, Listen: "127.0.0.1:0"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Config){
		"no site":              func(c *Config) { c.Site = "" },
		"bad site":             func(c *Config) { c.Site = "-a" },
		"no federation":        func(c *Config) { c.Federation = [16]byte{} },
		"short key":            func(c *Config) { c.Key = make([]byte, 16) },
		"profile":              func(c *Config) { c.Profile = 7 },
		"listen":               func(c *Config) { c.Listen = "127.0.0.1" },
		"listen port":          func(c *Config) { c.Listen = "127.0.0.1:70000" },
		"every interface":      func(c *Config) { c.Listen = ":7946" },
		"every interface v4":   func(c *Config) { c.Listen = "0.0.0.0:7946" },
		"advertise":            func(c *Config) { c.Advertise = "example.org" },
		"advertise port 0":     func(c *Config) { c.Advertise = "example.org:0" },
		"advertise everywhere": func(c *Config) { c.Advertise = "[::]:1" },
		"metadata":             func(c *Config) { c.Meta.HTTP = "a b:1" },
	} {
		c := good
		edit(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: Open says %v", name, err)
		}
	}
	good.Listen, good.Advertise = ":7946", "10.0.0.1:7946"
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestTakenPortIsReported(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		var addr string
		if network == "tcp" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			addr = l.Addr().String()
		} else {
			l, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			addr = l.LocalAddr().String()
		}
		_, err := Open(Config{Site: "a", Federation: testFederation, Listen: addr})
		if !errors.Is(err, ErrListen) {
			t.Errorf("%s: %v", network, err)
		}
	}
}
