package blobs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// matching reads what must have a hash: in the place of io.EOF it returns an error if it has not, so that nothing of it
// is kept.
type matching struct {
	from io.Reader
	want files.Hash
	sum  hash.Hash
}

func newMatching(from io.Reader, want files.Hash) *matching {
	return &matching{from, want, sha256.New()}
}

// Read implements io.Reader.
func (m *matching) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	_, _ = m.sum.Write(p[:n]) // a hash takes all
	if errors.Is(err, io.EOF) {
		if got := files.Hash(m.sum.Sum(nil)); got != m.want {
			return 0, fmt.Errorf("%w: the bytes have %s, not %s: send the file again", store.ErrWrongHash, got, m.want)
		}
	}
	return n, err
}
