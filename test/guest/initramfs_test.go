//go:build guest

package guest

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// archive is an initramfs that grows: a cpio archive of the kind that Linux unpacks ("newc").
type archive struct {
	bytes.Buffer
	inode int
}

// Modes of what is in it.
const (
	folder     = 0o040755
	executable = 0o100755
	file       = 0o100644
	console    = 0o020600 // a character device
)

// add appends an entry; major and minor are a device's.
func (a *archive) add(name string, mode int, content []byte, major, minor int) {
	a.inode++
	fmt.Fprintf(a, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.inode, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name)+1, 0)
	a.WriteString(name + "\x00")
	a.pad()
	a.Write(content)
	a.pad()
}

// pad fills up to a multiple of four bytes.
func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}

// copy appends a file of this machine as a program.
func (a *archive) copy(t *testing.T, name, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	a.add(name, executable, b, 0, 0)
}

// initramfs returns one whose first program runs the tests that match.
func initramfs(t *testing.T, tests, busybox, binary string) []byte {
	t.Helper()
	var a archive
	for _, name := range []string{"bin", "dev", "etc"} {
		a.add(name, folder, nil, 0, 0)
	}
	a.add("dev/console", console, nil, 5, 1)
	a.add("etc/passwd", file, []byte("root:x:0:0::/:/bin/sh\nplain:x:1000:1000::/:/bin/sh\n"), 0, 0)
	a.add("etc/group", file, []byte("root:x:0:\nplain:x:1000:\n"), 0, 0)
	a.add("tests", file, []byte(tests+"\n"), 0, 0)
	a.copy(t, "init", "testdata/init")
	a.copy(t, "bin/busybox", busybox)
	a.copy(t, "bin/guest.test", binary)
	a.add("TRAILER!!!", 0, nil, 0, 0)
	return a.Bytes()
}
