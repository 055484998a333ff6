package outputs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenRegular: a pipe, a link and a folder are none, and a pipe keeps nobody waiting.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(path("file"), []byte("x"), 0o600), unix.Mkfifo(path("fifo"), 0o600),
		os.Symlink(path("file"), path("link")), os.Mkdir(path("folder"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fifo", "link", "folder"} {
		if f, err := OpenRegular(path(name), os.O_RDONLY); err == nil {
			t.Errorf("a %s was opened", name)
			f.Close()
		}
	}
	f, err := OpenRegular(path("file"), os.O_RDWR|os.O_APPEND)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
