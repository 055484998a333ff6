package store

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/walfile"
)

// A record of the log is items one after the other, first those of removed blobs:
//
//	u8 removed or kept · u8 space · u8 length of the owner · owner · hash, and of a kept one:
//	i64 unix nanoseconds at which it was put · u32 length · content
const (
	itemRemoved = 1
	itemKept    = 2
)

// encodeLog returns the record of a group.
func encodeLog(removed []key, group []*logged) (b []byte) {
	n := 0
	for _, w := range group {
		n += 128 + len(w.content)
	}
	b = make([]byte, 0, n+128*len(removed))
	for _, k := range removed {
		b = appendKey(append(b, itemRemoved), k)
	}
	for _, w := range group {
		b = appendKey(append(b, itemKept), w.key)
		b = binary.LittleEndian.AppendUint64(b, uint64(w.put.UnixNano()))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(w.content)))
		b = append(b, w.content...)
	}
	return b
}

func appendKey(b []byte, k key) []byte {
	b = append(b, byte(k.Space), byte(len(k.Owner))) // check bounds it
	return append(append(b, k.Owner...), k.Hash[:]...)
}

// decodeLog returns the blobs that records keep, of each the last that they say, in the order in which they were put.
func decodeLog(records [][]byte) ([]*logged, error) {
	last := map[key]*logged{}
	var all, left []*logged
	for _, b := range records {
		for d := (logDecoder{b: b}); len(d.b) > 0; {
			w, err := d.item()
			if err != nil {
				return nil, err
			}
			if last[w.key] = w; w.content != nil {
				all = append(all, w)
			}
		}
	}
	for _, w := range all {
		if last[w.key] == w {
			left = append(left, w)
		}
	}
	return left, nil
}

// logDecoder takes items from the front of b.
type logDecoder struct {
	b   []byte
	bad bool
}

// item takes one; that of a removed blob has no content.
func (d *logDecoder) item() (*logged, error) {
	kind := d.take(1)[0]
	head := d.take(2)
	w := &logged{key: key{Place: Place{Space: Space(head[0]), Owner: string(d.take(int(head[1])))}}}
	w.Hash = files.Hash(d.take(len(w.Hash)))
	if kind == itemKept {
		w.put = time.Unix(0, int64(binary.LittleEndian.Uint64(d.take(8))))
		w.content = d.take(int(binary.LittleEndian.Uint32(d.take(4))))
	}
	if d.bad || kind != itemKept && kind != itemRemoved || w.check() != nil || !durable(fileOf(w.key)) ||
		w.content != nil && files.HashOf(w.content) != w.Hash {
		return nil, fmt.Errorf("read %s: %w: an item of a record does not read", logFile, walfile.ErrDamaged)
	}
	return w, nil
}

// take takes n bytes; those that are not there are zeros.
func (d *logDecoder) take(n int) []byte {
	if n > len(d.b) {
		d.bad, d.b = true, nil
		return make([]byte, min(n, logMost))
	}
	taken := d.b[:n:n]
	d.b = d.b[n:]
	return taken
}
