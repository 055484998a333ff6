package truststore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/node/identity"
)

// BenchmarkFind: whose a key is, in a roster of 1000 members.
func BenchmarkFind(b *testing.B) {
	const members = 1000
	r := Roster{Federation: [16]byte{1}}
	for i := range members {
		r.Members = append(r.Members, Entry{Site: fmt.Sprintf("site-%d", i), Key: identity.Generate().Public()})
	}
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
}
