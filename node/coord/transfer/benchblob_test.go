package transfer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// fileSink is a blob in a file, as a store has it. It hashes the pieces without a gap before them as they come.
type fileSink struct {
	*os.File
	size int64

	mu     sync.Mutex
	hash   hash.Hash
	hashed int          // pieces
	later  map[int]bool // pieces that came too early for that
}

func (s *fileSink) Size() int64 { return s.size }

func (s *fileSink) Missing() (out []int) {
	for i := range (s.size + PieceBytes - 1) / PieceBytes {
		out = append(out, int(i))
	}
	return out
}

func (s *fileSink) WritePiece(i int, b []byte) error {
	if _, err := s.WriteAt(b, int64(i)*PieceBytes); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.later[i] = true; i != s.hashed {
		return nil
	}
	_, _ = s.hash.Write(b)
	for s.hashed++; s.later[s.hashed]; s.hashed++ {
		if _, err := copyAll(s.hash, io.NewSectionReader(s.File, int64(s.hashed)*PieceBytes, PieceBytes)); err != nil {
			return err
		}
	}
	return nil
}

// blobFile writes a blob into a file, and names it.
func blobFile(b *testing.B, size int, text bool) (string, Blob) {
	path := filepath.Join(b.TempDir(), "blob")
	f, err := os.Create(path)
	must(b, err)
	h := sha256.New()
	for i := 0; i < size; i += 1 << 20 {
		_, err = io.MultiWriter(f, h).Write(content(uint64(i>>20), 1<<20, text))
		must(b, err)
	}
	must(b, f.Close())
	return path, Blob{Attempt: ours, What: Input, Hash: [sha256.Size]byte(h.Sum(nil)), Size: int64(size)}
}

// BenchmarkBlob is one blob of 1 GiB (64 MiB in short mode) over loopback from a file into a file whose hash is
// checked, beside bare copies of it: over one connection, hashed as it comes, and by four ranges.
func BenchmarkBlob(b *testing.B) {
	size := 1 << 30
	if testing.Short() {
		size = 64 << 20
	}
	for name, text := range map[string]bool{"random": false, "text": true} {
		b.Run(name, func(b *testing.B) {
			path, blob := blobFile(b, size, text)
			ways := []way{pullWay(b, path, blob)}
			for _, secure := range []bool{false, true} {
				for _, ranges := range []int{1, 4} {
					ways = append(ways, bareWay(b, path, blob, secure, ranges))
				}
			}
			b.ResetTimer()
			compare(b, blob.Size, ways)
		})
	}
}

func pullWay(b *testing.B, path string, blob Blob) way {
	s := &Server{Answer: func(context.Context, string, Request) (Source, Refusal) {
		f, err := os.Open(path)
		if err != nil {
			return nil, Failed
		}
		return openFile{f, blob.Size}, Granted
	}}
	at := newSecured(b, func(conn net.Conn, p relay.Preamble) { s.Serve(b.Context(), conn, p) })
	c := NewClient(at.dial)
	b.Cleanup(c.Close)
	return way{name: "pull", run: func(b *testing.B, to string) {
		f, err := os.Create(filepath.Join(to, "blob"))
		must(b, err)
		defer f.Close()
		s := &fileSink{File: f, size: blob.Size, hash: sha256.New(), later: map[int]bool{}}
		must(b, c.Pull(b.Context(), "a", at.addr, 1, blob, s))
		must(b, checkHash(s.hash.Sum(nil), blob.Hash))
	}}
}

func bareWay(b *testing.B, path string, blob Blob, secure bool, ranges int) way {
	each := blob.Size / int64(ranges)
	at := newBare(b, secure, func(conn net.Conn, number int) {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()
		_, _ = copyAll(conn, io.NewSectionReader(f, int64(number)*each, each))
	})
	name := map[bool]string{false: "bare", true: "tls"}[secure]
	return way{name: fmt.Sprintf("%s%d", name, ranges), run: func(b *testing.B, to string) {
		f, err := os.Create(filepath.Join(to, "blob"))
		must(b, err)
		defer f.Close()
		h := sha256.New()
		at.receive(b, ranges, func(conn net.Conn, number int) error {
			var w io.Writer = io.NewOffsetWriter(f, int64(number)*each)
			if ranges == 1 {
				w = io.MultiWriter(w, h)
			}
			_, err := copyAll(w, conn)
			return err
		})
		if ranges > 1 {
			must(b, checkFile(f, blob.Hash))
		} else {
			must(b, checkHash(h.Sum(nil), blob.Hash))
		}
	}}
}
