package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestTESRootsAreNotTheBrokers: neither its folder nor its secret files, from above, below or by a link.
func TestTESRootsAreNotTheBrokers(t *testing.T) {
	dir := t.TempDir()
	flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	AddFlags(flags)
	if err := os.Symlink(filepath.Join(dir, "broker"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "broker/data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for root, refused := range map[string]bool{
		dir: true, dir + "/broker": true, dir + "/broker/data": true, dir + "/broker/data/users": true, dir + "/link": true,
		dir + "/keys": true, dir + "/alice": false, "/etc/cloudshare": true, "/etc": true,
	} {
		_, err := Load("", flags, func() []string {
			return []string{
				"CLOUDSHARE_SITE=site-1", "CLOUDSHARE_DATA_DIR=" + dir + "/broker/data",
				"CLOUDSHARE_HTTP_TLS_KEY=" + dir + "/keys/site.key", "CLOUDSHARE_HTTP_TLS_CERT=" + dir + "/site.pem",
				"CLOUDSHARE_TES_ROOTS=alice=" + root + ":ro",
			}
		})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "tes.roots: alice="+root) {
			t.Errorf("%s: %v", root, err)
		}
	}
}
