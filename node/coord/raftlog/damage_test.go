package raftlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/boltfile"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
)

// A store with damaged pages is an error that says what to do, not a panic of
// bolt on a goroutine of its own.
func TestADamagedStoreIsAnError(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/raft.db"
	d, err := store.Open(dir)
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
	_, err = store.Open(dir)
	if !errors.Is(err, boltfile.ErrDamaged) {
		t.Fatalf("%v, want ErrDamaged", err)
	}
	for _, part := range []string{path, "page ", "come back on an empty one"} {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is not one line with %q", err, part)
		}
	}
}

// TestOlderFormatIsRefused: a directory whose log an older version wrote is left
// alone, with a line that says so.
func TestOlderFormatIsRefused(t *testing.T) {
	c := newCluster(t)
	closed(t, c.open(t, "a"))
	dir := filepath.Join(c.dir, "a")
	for _, version := range []int{memberVersion - 1, memberVersion + 1} {
		if err := facade.SaveMember(dir, member{Version: version}); err != nil {
			t.Fatal(err)
		}
		c.openErr(t, "a", ErrIdentity, func(*Config) {}, "run the version that wrote it")
		if _, err := Inspect(patience(t), c.offline("a", "")); !errors.Is(err, ErrIdentity) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// foreign is a machine to which every snapshot is of another format.
type foreign struct{ coord.Machine }

func (foreign) Restore(io.Reader) error {
	return fmt.Errorf("%w: run the version that wrote it", fsm.ErrBadSnapshot)
}

// TestSnapshotOfAnotherFormatSaysWhatToDo: raft says only that no snapshot could be loaded.
func TestSnapshotOfAnotherFormatSaysWhatToDo(t *testing.T) {
	c := newCluster(t)
	l := c.open(t, "a")
	await(t, "the leader is ready", l.Calls.Leads)
	register(t, l)
	c.Compact(t)
	closed(t, l)
	c.openErr(t, "a", fsm.ErrBadSnapshot, func(cfg *Config) { cfg.Machine = foreign{cfg.Machine} }, "start raft in", "run the version that wrote it")
}
