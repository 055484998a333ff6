package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
)

// The rows of a partial blob say which pieces are there: a head, and eight bytes for each piece. They are written in
// place, and no row crosses a sector. A synced piece is trusted, a written one only if its checksum fits: so a crash of
// the machine costs the pieces since the last sync, and one of the process none.
const (
	rowsMagic = "CSROWS1\n"
	rowsHead  = 8 + 8 + 8 // magic, size of the blob, zeros
	rowSize   = 8         // state, three zeros, checksum
)

// State of a piece.
const (
	pieceMissing = iota
	pieceWritten // not synced
	pieceSynced
	pieceBusy // it is being written; never on the disk
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pieceCount returns how many pieces a blob has.
func (s *Store) pieceCount(size int64) int { return int((size + s.piece - 1) / s.piece) }

// pieceLen returns how many bytes a piece of a blob has.
func (s *Store) pieceLen(size int64, i int) int64 { return min(s.piece, size-int64(i)*s.piece) }

// encodeRows returns the rows of a blob without pieces.
func (s *Store) encodeRows(size int64) []byte {
	b := make([]byte, rowsHead+rowSize*s.pieceCount(size))
	binary.LittleEndian.PutUint64(b[copy(b, rowsMagic):], uint64(size))
	return b
}

// encodeRow returns the row of a piece.
func encodeRow(state byte, sum uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{state, 0, 0, 0}, sum)
}

// loadRows returns the states of the pieces in part, and false if the rows are not of a blob of that size.
func (s *Store) loadRows(rows, part *os.File, size int64) (states []byte, ok bool) {
	want := s.encodeRows(size)
	b := make([]byte, len(want)+1)
	n, err := rows.ReadAt(b, 0)
	if n != len(want) || !errors.Is(err, io.EOF) || string(b[:rowsHead]) != string(want[:rowsHead]) {
		return nil, false
	}
	states = make([]byte, s.pieceCount(size))
	for i := range states {
		row := b[rowsHead+i*rowSize:]
		switch sum := binary.LittleEndian.Uint32(row[4:]); {
		case row[0] == pieceSynced, row[0] == pieceWritten && s.sumAt(part, size, i) == uint64(sum):
			states[i] = row[0]
		}
	}
	return states, true
}

// sumAt returns the checksum of a piece on the disk; what cannot be read has none that fits.
func (s *Store) sumAt(part *os.File, size int64, i int) uint64 {
	h := crc32.New(castagnoli)
	n := s.pieceLen(size, i)
	section := io.NewSectionReader(part, int64(i)*s.piece, n)
	if got, err := io.Copy(h, section); err != nil || got != n {
		return 1 << 32
	}
	return uint64(h.Sum32())
}
