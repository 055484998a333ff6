package outputs

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
)

// An index file says where the outputs of a sealed segment are, so that a start reads
// no segments: a head, the entries in the order of their keys, and a checksum. It can
// be made again of its segment.
const (
	indexMagic = "CSOIDX2\n"
	indexHead  = 8 + 8 + 4 + 4 + 4 + 4*8
	entrySize  = 8 + 4
	// maxKeys is how many entries a segment's outputs can have: see keyOf.
	maxKeys  = 2 * maxEntries
	maxIndex = indexHead + maxKeys*entrySize + 4
)

// entry is one key of an output of a segment.
type entry struct {
	key uint64
	off uint32
}

// summary is what the store must know of a segment without its entries.
type summary struct {
	count int // outputs
	apart int // streams in files of their own
	// first and last are the ends of the earliest and of the latest attempt, in unix
	// milliseconds.
	first, last int64
	charge      int64
}

// add counts one more output.
func (m *summary) add(h *head) {
	if m.count == 0 {
		m.first, m.last = h.at, h.at
	}
	m.first, m.last = min(m.first, h.at), max(m.last, h.at)
	m.count++
	m.charge += h.charge()
	for _, apart := range h.apart {
		if apart {
			m.apart++
		}
	}
}

// encodeIndex sorts the entries and returns their index file.
func encodeIndex(g *segment, entries []entry) []byte {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	le := binary.LittleEndian
	b := append(make([]byte, 0, indexHead+len(entries)*entrySize+4), indexMagic...)
	b = append(b, g.salt[:]...)
	for _, v := range []int{len(entries), g.count, g.apart} {
		b = le.AppendUint32(b, uint32(v))
	}
	for _, v := range []int64{g.size, g.charge, g.first, g.last} {
		b = le.AppendUint64(b, uint64(v))
	}
	for _, e := range entries {
		b = le.AppendUint32(le.AppendUint64(b, e.key), e.off)
	}
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeIndex reads an index file, whatever it holds.
func decodeIndex(b []byte) (g segment, entries []entry, ok bool) {
	le := binary.LittleEndian
	if len(b) < indexHead+4 || string(b[:8]) != indexMagic {
		return g, nil, false
	}
	body := b[:len(b)-4]
	n := int(le.Uint32(b[16:]))
	if n > maxKeys || len(body) != indexHead+n*entrySize ||
		crc32.Checksum(body, castagnoli) != le.Uint32(b[len(body):]) {
		return g, nil, false
	}
	copy(g.salt[:], b[8:])
	g.count, g.apart = int(le.Uint32(b[20:])), int(le.Uint32(b[24:]))
	for i, to := range []*int64{&g.size, &g.charge, &g.first, &g.last} {
		*to = int64(le.Uint64(b[28+8*i:]))
	}
	entries = make([]entry, n)
	for i := range entries {
		at := b[indexHead+i*entrySize:]
		entries[i] = entry{le.Uint64(at), le.Uint32(at[8:])}
	}
	return g, entries, g.count <= n
}

// searchIndex looks for a key in an index file of size bytes, and reads little of it.
func searchIndex(f io.ReaderAt, size int64, key uint64) bool {
	var b [entrySize]byte
	low, high := int64(0), (size-indexHead-4)/entrySize
	for low < high {
		mid := (low + high) / 2
		if _, err := f.ReadAt(b[:], indexHead+mid*entrySize); err != nil {
			return false
		}
		switch got := binary.LittleEndian.Uint64(b[:]); {
		case got == key:
			return true
		case got < key:
			low = mid + 1
		default:
			high = mid
		}
	}
	return false
}
