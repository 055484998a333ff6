package truststore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/node/identity"
)

// BenchmarkRoster is a roster of 1000 members: one of them changes its key, and is found by it.
func BenchmarkRoster(b *testing.B) {
	const members = 1000
	r := Roster{Federation: [16]byte{1}}
	for i := range members {
		r.Members = append(r.Members, Entry{Site: fmt.Sprintf("site-%d", i), Key: identity.Generate().Public(), Elector: i < 5})
	}
	b.Run("update", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "roster"), nil)
		if err != nil {
			b.Fatal(err)
		}
		key := r.Members[7].Key
		for b.Loop() {
			r.Index++
			key[0]++
			next := r
			next.Members = append([]Entry(nil), r.Members...)
			next.Members[7].Key = key
			if err := s.Update(next); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "roster"), nil)
		if err == nil {
			err = s.Update(r)
		}
		if err != nil {
			b.Fatal(err)
		}
		i := 0
		for b.Loop() {
			if i++; s.Find(r.Members[i%members].Key).Site == "" {
				b.Fatal("not found")
			}
		}
	})
}
