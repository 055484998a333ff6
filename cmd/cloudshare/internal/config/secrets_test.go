package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// TestSecretsAreHidden: whatever the configuration names and is the broker's own is hidden
// from tasks in sandboxes, its own file with it.
func TestSecretsAreHidden(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(kubeconfig, "users: [{name: a, user: {client-key: a.key, tokenFile: /opt/token}}, {name: b}]\n")
	file := filepath.Join(dir, "broker.yaml")
	write(file, "site: site-1\ndata_dir: /opt/data\nhttp_tls_cert: /etc/ssl/site.pem\nhttp_tls_key: /etc/ssl/private/site.key\n")
	flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	AddFlags(flags)
	c, err := Load(file, flags, func() []string { return nil })
	if err != nil {
		t.Fatal(err)
	}
	c.ZKAuth, c.ZKTLSKey, c.Join = "/etc/zk/auth", "/etc/zk/site.key", "@/etc/invitation"
	c.Data.S3.AccessKey, c.Data.S3.SecretKey = "@/etc/s3/id", "@/etc/s3/secret"
	c.Container.Engine, c.Kube.Cluster = "unix:///opt/docker.sock", kubeconfig
	hidden := c.ForLocal().Sandbox.Hide
	for _, want := range []string{
		"/etc/cloudshare", "/opt/data", file, "/etc/zk/auth", "/etc/zk/site.key", "/etc/ssl/private/site.key", "/etc/invitation", "/etc/s3/id", "/etc/s3/secret",
		"/opt/docker.sock", kubeconfig, filepath.Join(dir, "a.key"), "/opt/token",
	} {
		if !slices.Contains(hidden, want) {
			t.Errorf("%s is not hidden: %q", want, hidden)
		}
	}
}
