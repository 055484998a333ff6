package transfer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

const smallBytes = 10 << 10

// BenchmarkBlobs is 10,000 blobs of 10 KiB (1,000 in short mode), each from a file into a file, its hash checked;
// beside four connections that bring a quarter of them each, one behind the other, without a word between them.
func BenchmarkBlobs(b *testing.B) {
	blobs := make([]Blob, 10_000)
	if testing.Short() {
		blobs = blobs[:1000]
	}
	from := b.TempDir()
	for i := range blobs {
		c := content(uint64(i), smallBytes, false)
		must(b, os.WriteFile(fileOf(from, i), c, 0o600))
		blobs[i] = nameOf(c)
	}
	b.ResetTimer()
	compare(b, int64(len(blobs))*smallBytes, []way{
		batchWay(b, from, blobs), bareFilesWay(b, from, blobs, false), bareFilesWay(b, from, blobs, true),
	})
}

func fileOf(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("%05d", i)) }

// keepSmall writes a blob into a file, if its hash is right.
func keepSmall(to string, i int, content []byte, want *Blob) error {
	hash := sha256.Sum256(content)
	if err := checkHash(hash[:], want.Hash); err != nil {
		return err
	}
	return os.WriteFile(fileOf(to, i), content, 0o600)
}

func batchWay(b *testing.B, from string, blobs []Blob) way {
	numbers := map[[sha256.Size]byte]int{}
	for i := range blobs {
		numbers[blobs[i].Hash] = i
	}
	s := &Server{Answer: func(_ context.Context, _ string, q Request) (Source, Refusal) {
		f, err := os.Open(fileOf(from, numbers[q.Hash]))
		if err != nil {
			return nil, Failed
		}
		return openFile{f, smallBytes}, Granted
	}}
	at := newSecured(b, func(conn net.Conn, p relay.Preamble) { s.Serve(b.Context(), conn, p) })
	c := NewClient(at.dial)
	b.Cleanup(c.Close)
	return way{name: "pull", run: func(b *testing.B, to string) {
		must(b, c.PullBatch(b.Context(), "a", at.addr, 1, blobs, func(i int, content []byte, refused error) error {
			if refused != nil {
				return refused
			}
			return keepSmall(to, i, content, &blobs[i])
		}))
	}}
}

func bareFilesWay(b *testing.B, from string, blobs []Blob, secure bool) way {
	each := len(blobs) / parallel
	at := newBare(b, secure, func(conn net.Conn, number int) {
		for i := range each {
			content, err := os.ReadFile(fileOf(from, number*each+i))
			if err != nil {
				return
			}
			if _, err = conn.Write(content); err != nil {
				return
			}
		}
	})
	return way{name: map[bool]string{false: "bare", true: "tls"}[secure], run: func(b *testing.B, to string) {
		at.receive(b, parallel, func(conn net.Conn, number int) error {
			content := make([]byte, smallBytes)
			for i := number * each; i < (number+1)*each; i++ {
				if _, err := io.ReadFull(conn, content); err != nil {
					return err
				}
				if err := keepSmall(to, i, content, &blobs[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}
