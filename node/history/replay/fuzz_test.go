package replay_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

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

// FuzzSegment goes through foreign bytes as a broker's own segment, where damage does not end the audit, exports them,
// and has a broker go on with them: all return, and what a broker writes behind them can be read.
func FuzzSegment(f *testing.F) {
	fed := newFederation(f, 64<<20)
	fed.idle(45)
	fed.job("site-2")
	fed.close()
	whole, err := os.ReadFile(fed.files()[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, uint32(0), uint16(0))
	f.Add(whole, uint32(len(whole)/2), uint16(1))
	f.Add(whole, uint32(len(whole)/3), uint16(512))
	f.Add(whole[:len(whole)-3], uint32(len(whole)-40), uint16(4))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte, from uint32, zeros uint16) {
		if len(b) > 1<<16 {
			return
		}
		last := []byte(nil)
		for _, file := range [][]byte{bytes.Clone(b), mended(b)} {
			start := min(int(from), len(file))
			clear(file[start:min(len(file), start+int(zeros))])
			if !bytes.Equal(file, last) { // often the checksums are right already
				asSegment(t, dir, file)
			}
			last = file
		}
	})
}

// asSegment has a file be a broker's newest segment.
func asSegment(t *testing.T, dir string, file []byte) {
	t.Helper()
	path := filepath.Join(dir, "00000001.history")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	through(t, dir)
	k, err := history.Open(history.Config{Dir: dir, MaxBytes: 1 << 20, Site: "site-1", Logger: zerolog.Nop()})
	if err == nil {
		err = k.Close()
	}
	var left []byte
	if err == nil {
		left, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(left, file) { // else it has been gone through
		through(t, dir)
	}
}

// through goes through a folder, and exports it.
func through(t *testing.T, dir string) {
	src, err := history.OpenSource(dir)
	if err != nil {
		return
	}
	defer src.Close()
	r, err := replay.Verify(t.Context(), src, replay.Options{})
	if err == nil && r.Difference != nil && bytes.ContainsRune([]byte(r.Difference.What), '\n') {
		t.Errorf("%q", r.Difference.What)
	}
	var out bytes.Buffer
	_ = (&history.Export{}).Write(src, &out) // what cannot be exported is told
}
