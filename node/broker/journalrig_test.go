package broker

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/node/record"
)

// copyJournal puts what the files of an open journal hold now into a directory. No
// write may be under way.
func copyJournal(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"journal.db", "journal.wal"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// hold has a write of the journal not return, as on a disk that hangs, until release
// is called, and the journal's other writes wait for it.
func hold(t *testing.T, j *record.Journal) (release func()) {
	t.Helper()
	entered, released, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- j.Commit([]record.Write{{Bucket: record.BucketMeta, Key: []byte("held"), Merge: func([]byte) []byte {
			close(entered)
			<-released
			return nil
		}}})
	}()
	<-entered
	release = sync.OnceFunc(func() {
		close(released)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}
