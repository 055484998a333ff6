package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func TestCoordinationKeys(t *testing.T) {
	good := func() Config {
		c := Default()
		c.Site, c.Coordination, c.ZK, c.ZKAuth = "a", ZooKeeper, "h1:2181,h2:2181/cloudshare", "digest"
		c.ZKTLS = true
		return c
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for word, change := range map[string]func(*Config){
		"coordination":    func(c *Config) { c.Coordination = "etcd" },
		"zk and zk_":      func(c *Config) { c.Coordination = Raft },
		"zk is missing":   func(c *Config) { c.ZK = "" },
		"HOST:PORT":       func(c *Config) { c.ZK = "h1/cloudshare" },
		"chroot":          func(c *Config) { c.ZK = "h1:1//x" },
		"zk_auth":         func(c *Config) { c.ZKAuth = "" },
		"zk_session":      func(c *Config) { c.ZKSession = -1 },
		"need --zk-tls":   func(c *Config) { c.ZK, c.ZKTLS, c.ZKTLSCA = "127.0.0.1:2181/x", false, "ca.pem" },
		"not on loopback": func(c *Config) { c.ZKTLS = false },
		"--zk-insecure":   func(c *Config) { c.ZKTLS, c.ZK = false, "localhost:2181,10.0.0.1:2181/x" },
		"together":        func(c *Config) { c.ZKTLS, c.ZKTLSCert = true, "c.pem" },
	} {
		c := good()
		change(&c)
		if err := c.Validate(); cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// Plain connections stay on loopback, unless somebody says that the network is trusted.
func TestPlainZooKeeper(t *testing.T) {
	c := Default()
	c.Site, c.Coordination, c.ZK, c.ZKAuth = "a", ZooKeeper, "localhost:2181,127.0.0.1:2182,[::1]:2183/cloudshare", "digest"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.ZK, c.ZKInsecure = "10.0.0.1:2181/cloudshare", true
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// The credentials are for the owner of the file alone.
func TestReadDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "digest")
	for _, tc := range []struct {
		text string
		mode os.FileMode
		word string
	}{
		{"a:b\n", 0o600, ""},
		{"a:b:c", 0o600, ""},
		{"a:b", 0o640, "chmod 600"},
		{"ab", 0o600, "USER:PASSWORD"},
		{":b", 0o600, "USER:PASSWORD"},
		{"a:b\nc:d", 0o600, ""},
		{"a:b\nc:d\ne:f", 0o600, "USER:PASSWORD"},
		{"a:b\nc", 0o600, "USER:PASSWORD"},
		{strings.Repeat("a:b", 1000), 0o600, "USER:PASSWORD"},
	} {
		if err := os.WriteFile(path, []byte(tc.text), tc.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tc.mode); err != nil {
			t.Fatal(err)
		}
		_, _, _, err := readDigest(path)
		if (err == nil) != (tc.word == "") || err != nil && !strings.Contains(err.Error(), tc.word) {
			t.Errorf("%.20q with mode %o: %v", tc.text, tc.mode, err)
		}
	}
	if _, _, _, err := readDigest(path + "-not-there"); err == nil || !strings.Contains(err.Error(), "USER:PASSWORD") {
		t.Errorf("no file: %v", err)
	}
}

// Data of one backend are not started on the other.
func TestDataOfTheOtherBackend(t *testing.T) {
	c := Default()
	c.Site, c.DataDir = "a", t.TempDir()
	dir := filepath.Join(c.DataDir, ZKDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "member.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.CheckFounding(); err == nil || !strings.Contains(err.Error(), "--coordination zookeeper") {
		t.Errorf("%v", err)
	}
	c.Coordination = ZooKeeper
	if err := c.CheckFounding(); err != nil {
		t.Error(err)
	}
}
