package raftlog

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/boltfile"
)

// A store with damaged pages is an error that says what to do, not a panic of
// bolt on a goroutine of its own.
func TestADamagedStoreIsAnError(t *testing.T) {
	path := t.TempDir() + "/raft.db"
	d, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 200; i++ {
		if err = d.StoreLog(&raft.Log{Index: i, Term: 1, Data: make([]byte, 1<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	if err = d.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * os.Getpagesize(); i < len(b); i++ { // the heads are whole
		b[i] = 0xA5
	}
	if err = os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = openBolt(path)
	if !errors.Is(err, boltfile.ErrDamaged) {
		t.Fatalf("%v, want ErrDamaged", err)
	}
	for _, part := range []string{path, "page ", "join as a new site"} {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is not one line with %q", err, part)
		}
	}
}

// panicking is a disk that meets a bad page.
type panicking struct{ disk }

func (panicking) GetLog(uint64, *raft.Log) error { panic("assertion failed: Page expected to be: 7") }

// What bolt panics about while raft runs fails the member as an error would.
func TestADamagedPageFailsTheMember(t *testing.T) {
	var failure error
	s := newStore(&guarded{panicking{}, "raft.db"}, Hooks{}, func(err error) { failure = err })
	s.running.Store(true)
	done := make(chan struct{})
	go func() { // raft's, which ends: raft would panic
		defer close(done)
		_ = s.GetLog(1, new(raft.Log))
		t.Error("raft goes on")
	}()
	<-done
	if !errors.Is(failure, boltfile.ErrDamaged) || !strings.Contains(failure.Error(), "raft.db") {
		t.Errorf("the member failed by %v", failure)
	}
}
