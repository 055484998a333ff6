package replay_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
)

// FuzzVerify goes through foreign files: it returns, and what it says of a file is in one line. Checksums are put
// right, so that what is behind them is reached.
func FuzzVerify(f *testing.F) {
	fed := newFederation(f, 64<<20)
	fed.job("site-2")
	fed.close()
	whole := fed.export(0, 0)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		path := filepath.Join(dir, "fuzzed")
		for _, file := range [][]byte{b, mended(b)} {
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			src, err := history.OpenSource(path)
			if err != nil {
				continue
			}
			r, err := replay.Verify(t.Context(), src, replay.Options{})
			if err == nil && r.Difference != nil && bytes.ContainsRune([]byte(r.Difference.What), '\n') {
				t.Errorf("%q", r.Difference.What)
			}
			_ = src.Close()
		}
	})
}

// mended returns a file whose records have the right checksums, as far as there are some.
func mended(file []byte) []byte {
	b := bytes.Clone(file)
	at := 0
	for range 2 { // lines
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	for at < len(b) {
		n, size := binary.Uvarint(b[at+1:])
		end := uint64(at) + 1 + uint64(max(size, 0)) + n
		if size <= 0 || n > 1<<20 || end+4 > uint64(len(b)) {
			return b
		}
		binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[at:end], crc32.MakeTable(crc32.Castagnoli)))
		at = int(end) + 4
	}
	return b
}
