package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// options are those of the brokers' files: the free pages are found by reading
// the tree.
var options = bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: true}

// written is a file with a tree of several levels, values longer than a page, a
// small bucket and one within a bucket; and its page size.
func written(t testing.TB) (path string, size int) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.db")
	db, err := bolt.Open(path, 0o600, &options)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 4 { // pages that were written over
		err = db.Update(func(tx *bolt.Tx) error { return fill(tx, round) })
		if err != nil {
			t.Fatal(err)
		}
	}
	size = db.Info().PageSize
	if err = db.Close(); err != nil {
		t.Fatal(err)
	}
	return path, size
}

func fill(tx *bolt.Tx, round int) error {
	logs, err := tx.CreateBucketIfNotExists([]byte("logs"))
	if err != nil {
		return err
	}
	for i := range uint64(600) {
		value := make([]byte, 100+round)
		if i%97 == 0 {
			value = make([]byte, 20_000)
		}
		if err = logs.Put(binary.BigEndian.AppendUint64(nil, i), value); err != nil {
			return err
		}
	}
	small, err := tx.CreateBucketIfNotExists([]byte("small"))
	if err != nil {
		return err
	}
	if err = small.Put([]byte("term"), []byte{byte(round)}); err != nil {
		return err
	}
	inner, err := logs.CreateBucketIfNotExists([]byte("zinner"))
	if err != nil {
		return err
	}
	return inner.Put([]byte("k"), []byte("v"))
}

func openIt(path string) error {
	db, err := Open(path, func() (*bolt.DB, error) { return bolt.Open(path, 0o600, &options) })
	if err != nil {
		return err
	}
	// All of it can be read and written over.
	err = Guard(path, func() error { return db.Update(func(tx *bolt.Tx) error { return fill(tx, 9) }) })
	return errors.Join(err, db.Close())
}

func TestWhatBoltWroteIsWhole(t *testing.T) {
	path, _ := written(t)
	if err := openIt(path); err != nil {
		t.Fatal(err)
	}
	if err := openIt(filepath.Join(t.TempDir(), "new.db")); err != nil {
		t.Fatalf("a new file: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openIt(empty); err != nil {
		t.Fatalf("an empty file: %v", err)
	}
}

// TestDamagedPages overwrites each page in turn, and all but the heads: never a
// panic, and the newest tree's pages are named.
func TestDamagedPages(t *testing.T) {
	path, size := written(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for page := 2; (page+1)*size <= len(whole); page++ {
		b := bytes.Clone(whole)
		for i := range size {
			b[page*size+i] = 0xA5
		}
		if err = opened(t, b); err != nil {
			damaged++
		}
	}
	if damaged < 20 {
		t.Errorf("damage was noticed in %d pages", damaged)
	}
	b := bytes.Clone(whole)
	clear(b[2*size:])
	if err = opened(t, b); !errors.Is(err, ErrDamaged) {
		t.Errorf("all pages zero: %v", err)
	}
	clear(b)
	if err = opened(t, b); !errors.Is(err, ErrDamaged) {
		t.Errorf("all zero: %v", err)
	}
	if err = opened(t, whole[:len(whole)/4]); !errors.Is(err, ErrDamaged) {
		t.Errorf("cut off: %v", err)
	}
	if err = opened(t, whole[:100]); !errors.Is(err, ErrDamaged) {
		t.Errorf("100 bytes: %v", err)
	}
}

// opened opens a file of these bytes.
func opened(t *testing.T, b []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "y.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	err := openIt(path)
	if err != nil && !errors.Is(err, ErrDamaged) {
		t.Fatalf("%v, want ErrDamaged", err)
	}
	return err
}

// TestFlippedBytes changes a few bytes of the pages' heads and elements.
func TestFlippedBytes(t *testing.T) {
	path, size := written(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 7
	draw := rand.New(rand.NewPCG(seed, seed))
	for round := range 400 {
		b := bytes.Clone(whole)
		page := draw.IntN(len(b) / size)
		for range 3 {
			b[page*size+draw.IntN(96)] = byte(draw.Uint32())
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) { _ = opened(t, b) })
	}
}

// TestEitherHeadWillDo: a commit that was cut off leaves the other one.
func TestEitherHeadWillDo(t *testing.T) {
	path, size := written(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for head := range 2 {
		b := bytes.Clone(whole)
		b[head*size+headSize+20] ^= 1
		if err = opened(t, b); err != nil {
			t.Errorf("head %d is damaged: %v", head, err)
		}
	}
}

// A file in use is not read: it may change meanwhile.
func TestAFileInUseIsForBolt(t *testing.T) {
	path, _ := written(t)
	db, err := bolt.Open(path, 0o600, &options)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err = Check(path); err != nil {
		t.Error(err)
	}
}

func FuzzCheckTree(f *testing.F) {
	path, size := written(f)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(2*size), []byte{0xff})
	f.Add(uint32(3*size+8), []byte{1, 0})
	f.Fuzz(func(_ *testing.T, at uint32, with []byte) {
		b := bytes.Clone(whole)
		copy(b[int(at)%len(b):], with)
		_ = checkTree(bytes.NewReader(b), int64(len(b)))
	})
}
