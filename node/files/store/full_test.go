package store

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/node/files"
)

// TestFullForReal: writes and reservations that the kernel itself cuts off, by the process's own limit of a file's
// size. It holds in a process of its own, as go test has one that writes a log.
func TestFullForReal(t *testing.T) {
	if os.Getenv("FULL_DISK") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullForReal$")
		cmd.Env = append(os.Environ(), "FULL_DISK=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	r := testRig(t)
	r.put(own, "before")
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(bytes uint64) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
	}
	limit(400_000)
	defer limit(before.Cur)
	content := text("x", 600_000)
	_, put := r.Put(t.Context(), own, strings.NewReader(content), files.MaxFile)
	_, begin := r.Begin(own, files.BlobOf([]byte(content)))
	for _, err := range []error{put, begin} {
		if !errors.Is(err, ErrFull) || !errors.Is(err, unix.EFBIG) {
			t.Error(err)
		}
	}
	r.wantWhole("while there is no room")
	r.put(own, "meanwhile")
	limit(before.Cur)
	r.put(own, content)
	r.fill(cached, content)
	for _, c := range []string{"before", "meanwhile", content} {
		r.want(own, c)
	}
	r.wantWhole("with room again")
}

// TestErrorOfPutNamesNoOwner: users were told of "user-", which is how a place is named and nobody's name.
func TestErrorOfPutNamesNoOwner(t *testing.T) {
	r := testRig(t)
	at := OwnOf("")
	_, err := r.Put(t.Context(), at, strings.NewReader("ab"), 1)
	if !errors.Is(err, ErrTooLarge) || strings.Contains(err.Error(), at.Owner) {
		t.Error(err)
	}
}
