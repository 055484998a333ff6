package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/identity"
)

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	key := identity.Generate()
	if err := key.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := identity.Load(path)
	if err != nil || got.Public() != key.Public() {
		t.Fatalf("Load = %v, %v", got, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, %v", names, err)
	}
}

// A key that is there stays, whoever else begins to write one.
func TestSaveReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	first := identity.Generate()
	if err := first.Save(path); err != nil {
		t.Fatal(err)
	}
	if err := identity.Generate().Save(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("Save over a key: %v", err)
	}
	if got, err := identity.Load(path); err != nil || got.Public() != first.Public() {
		t.Errorf("Load = %v, %v", got, err)
	}
}

// Each file that is refused is refused in one line that says which, why and what to do.
func TestRefusedKeyFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		err  error
		says []string
	}{
		"missing":           {func(*testing.T, string) {}, os.ErrNotExist, nil},
		"readable by group": {chmod(0o640), identity.ErrExposed, []string{"0640", "chmod 600"}},
		"readable by all":   {chmod(0o604), identity.ErrExposed, []string{"0604", "act as this site"}},
		"writable by group": {chmod(0o620), identity.ErrExposed, []string{"0620"}},
		"link":              {link, identity.ErrExposed, []string{"is a link"}},
		"folder":            {folder, identity.ErrKeyFile, []string{"no file"}},
		"empty":             {text(""), identity.ErrKeyFile, []string{"PEM", "backup"}},
		"truncated":         {text("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIE"), identity.ErrKeyFile, []string{"PEM"}},
		"damaged":           {text(encoded("PRIVATE KEY", []byte("not DER"))), identity.ErrKeyFile, []string{"damaged"}},
		"certificate":       {text(encoded("CERTIFICATE", []byte("x"))), identity.ErrKeyFile, []string{"PRIVATE KEY"}},
		"two keys":          {twice, identity.ErrKeyFile, []string{"not one"}},
		"another algorithm": {otherAlgorithm, identity.ErrKeyFile, []string{"ecdsa", "Ed25519"}},
		"large":             {text(strings.Repeat("x", 1<<20)), identity.ErrKeyFile, []string{"larger than"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			c.make(t, path)
			_, err := identity.Load(path)
			if !errors.Is(err, c.err) {
				t.Fatalf("Load: %v, want %v", err, c.err)
			}
			for _, words := range append(c.says, path) {
				if !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v: not in one line with %q", err, words)
				}
			}
		})
	}
}

// A process that is not root takes no key of another user's.
func TestForeignKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := identity.Generate().Save(path); err != nil {
		t.Fatal(err)
	}
	err := os.Chown(path, os.Geteuid()+1, -1)
	if errors.Is(err, os.ErrPermission) {
		if _, err := identity.Load(path); err != nil {
			t.Fatal(err) // only root gives files away: its own key loads
		}
		return
	}
	if _, err = identity.Load(path); !errors.Is(err, identity.ErrExposed) || !strings.Contains(err.Error(), "chown") {
		t.Errorf("Load: %v", err)
	}
}

func chmod(mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if err := errors.Join(identity.Generate().Save(path), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(identity.Generate().Save(path+"2"), os.Symlink(path+"2", path)); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func text(s string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func twice(t *testing.T, path string) {
	t.Helper()
	if err := identity.Generate().Save(path + "2"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path + "2")
	if err != nil {
		t.Fatal(err)
	}
	text(string(b)+string(b))(t, path)
}

func otherAlgorithm(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text(encoded("PRIVATE KEY", der))(t, path)
}

func encoded(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Whatever stands in the file, Load answers with an error or a key that signs.
func FuzzKeyFile(f *testing.F) {
	f.Add([]byte(encoded("PRIVATE KEY", []byte("not DER"))))
	path := filepath.Join(f.TempDir(), "key")
	if err := exampleKey().Save(path); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := identity.Load(path); err == nil && !key.Public().Verify(key.Sign("fuzz"), "fuzz") {
			t.Fatal("a key that cannot sign")
		}
	})
}
