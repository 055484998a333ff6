package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/files"
)

// Damage that can be found is found, stays known until the blob is put again, and never looks like content.
func TestDamage(t *testing.T) {
	content := text("x", 600_000)
	for name, damage := range map[string]func(path string) error{
		"a byte":   func(path string) error { return writeAt(path, "!", 500_000) },
		"the end":  func(path string) error { return os.Truncate(path, 599_999) },
		"all":      func(path string) error { return os.Truncate(path, 0) },
		"longer":   func(path string) error { return writeAt(path, "!", 600_000) },
		"its file": os.Remove,
		"a link": func(path string) error {
			err := os.Rename(path, path+"x")
			return errors.Join(err, os.Symlink(filepath.Base(path)+"x", path))
		},
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		for _, again := range []string{"put", "filled"} {
			r := testRig(t)
			b := r.put(own, content)
			path := filepath.Join(r.dir, fileOf(key{own, b.Hash}))
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			if name == "a link" { // which leads nowhere else, and has the bytes
				r.want(own, content)
				continue
			}
			for range 2 {
				if err := r.Verify(own, b.Hash); !errors.Is(err, ErrDamaged) && name != "a folder" || err == nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if name == "a folder" { // not the store's doing: it stays, and is told
				continue
			}
			if missing := r.Missing(own, b.Hash); len(missing) != 1 {
				t.Errorf("%s: it counts as there", name)
			}
			if missing := r.Pin("job", ref(own, content)); len(missing) != 1 {
				t.Errorf("%s: it counts as there for a pin", name)
			}
			if again == "put" {
				r.put(own, content)
			} else {
				r.fill(own, content)
			}
			r.want(own, content)
			if u := r.Usage(Own); u.Blobs != 1 || u.Bytes != charge(600_000) {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}

func writeAt(path, b string, off int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(b), off)
	return errors.Join(err, f.Close())
}

// Who has a blob open that is put again reads on.
func TestPutAgainUnderAReader(t *testing.T) {
	r := testRig(t)
	b := r.put(own, "content")
	reader, err := r.Open(own, b.Hash)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.dir, fileOf(key{own, b.Hash}))
	if err = os.WriteFile(path, []byte("CONTENT"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err = r.Verify(own, b.Hash); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	r.put(own, "content")
	r.want(own, "content")
	if err = reader.Close(); err != nil {
		t.Fatal(err)
	}
	r.want(own, "content")
	if u := r.Usage(Own); u.Blobs != 1 || u.Bytes != block {
		t.Errorf("%+v", u)
	}
}

// What is not the store's stays, counts for nothing and stops nothing; what is half done goes.
func TestStrangeFiles(t *testing.T) {
	r := testRig(t)
	r.put(own, "content")
	folder := filepath.Join(r.dir, folderOf(ref(own, "content")))
	hash := files.HashOf([]byte("other")).String()
	here := filepath.Join(folder, files.HashOf([]byte("content")).String())
	for _, path := range []string{
		filepath.Join(folder, "notes"), filepath.Join(folder, hash), filepath.Join(r.dir, "own", "%61"),
		filepath.Join(r.dir, "own", "site-1", "x"), here + ".other", strings.ToUpper(here),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := r.names()
	for _, path := range []string{here + partExt, here + rowsExt, filepath.Join(r.dir, newFolder, "7")} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(here + rowsExt); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if after := r.names(); !slices.Equal(after, before) {
		t.Errorf("%q\nbefore %q", after, before)
	}
	if u := r.Usage(Own); u.Blobs != 1 {
		t.Errorf("%+v", u)
	}
	r.want(own, "content")
}
