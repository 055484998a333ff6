package store

import (
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/node/files"
)

const (
	// unsyncedMax is how many pieces may be written between two syncs: what a crash of the machine costs.
	unsyncedMax = 8
	// hashedAhead is how many pieces one WritePiece hashes at most, those that came before out of order included.
	hashedAhead = 4
)

// Partial is a blob that is being filled, of pieces in any order. Several pieces may be written at a time. One of
// Finish, Close and Abandon ends it; Close may follow the others.
type Partial struct {
	s    *Store
	e    *entry   // held; the whole blob's if done from the beginning
	f    *os.File // the content; nil with done from the beginning
	rows *os.File // nil: there is one piece at most

	mu   sync.Mutex // held over no more than a row
	done bool       // Finish, Close or Abandon ended it
	// writers are calls of WritePiece and Finish under way.
	writers  int
	states   []byte // of the pieces; nil: the whole blob is there
	unsynced []int  // pieces whose state is pieceWritten
	settling bool   // a call of settle is under way; one at a time learns of a sync that fails
	placed   bool   // the disk knows the names of the files
	failed   int    // syncs: what was written meanwhile is not known to be on the disk
	// sum is of the first hashed pieces. Who hashes has hashing set, and nobody else touches sum meanwhile.
	sum     hash.Hash
	hashed  int
	hashing bool
	// distrust: a sync failed, so that what was hashed in memory may not be what is on the disk.
	distrust bool
}

// Size returns how many bytes the blob has.
func (p *Partial) Size() int64 { return p.e.size }

// Pieces returns how many pieces the blob has.
func (p *Partial) Pieces() int { return p.s.pieceCount(p.e.size) }

// Missing returns the pieces that are not there, ascending.
func (p *Partial) Missing() (pieces []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, state := range p.states {
		if state == pieceMissing || state == pieceBusy {
			pieces = append(pieces, i)
		}
	}
	return pieces
}

// WritePiece writes the i-th piece, whole; one that is there stays as it is. Each eight pieces are synced. Errors:
// ErrFull, ErrBusy if the piece is being written, ErrWrongHash for another length, ErrClosed. After an error the piece
// is missing, or there.
func (p *Partial) WritePiece(i int, data []byte) error {
	if i < 0 || i >= p.Pieces() || int64(len(data)) != p.s.pieceLen(p.e.size, i) {
		return fmt.Errorf("write piece %d of %s: %w: %d bytes are not its length", i, p.e.key, ErrWrongHash, len(data))
	}
	write, err := p.start(i)
	if write {
		err = p.write(i, data)
		p.stop()
	}
	if err != nil {
		return wrap(fmt.Sprintf("write piece %d of", i), p.e.key, err)
	}
	return nil
}

// start reports whether the piece is to be written, and marks it as busy.
func (p *Partial) start(i int) (write bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.done && p.states == nil: // there is all of it
		return false, nil
	case p.done:
		return false, ErrClosed
	case p.states[i] == pieceBusy:
		return false, fmt.Errorf("%w: it is being written", ErrBusy)
	case p.states[i] != pieceMissing:
		return false, nil
	}
	p.states[i] = pieceBusy
	p.writers++
	return true, nil
}

func (p *Partial) stop() {
	p.mu.Lock()
	p.writers--
	p.mu.Unlock()
}

func (p *Partial) write(i int, data []byte) error {
	d := &p.s.disk
	p.mu.Lock()
	failed := p.failed
	p.mu.Unlock()
	err := p.s.withRoom(int64(len(data)), func() error { return d.writeAt(pointWrite, p.f, data, int64(i)*p.s.piece) })
	if err == nil && p.rows != nil {
		row := encodeRow(pieceWritten, crc32.Checksum(data, castagnoli))
		err = d.writeAt(pointRow, p.rows, row, rowAt(i))
	}
	p.mu.Lock()
	if err == nil && failed != p.failed {
		err = errSync
	}
	if err != nil {
		p.states[i] = pieceMissing
		p.mu.Unlock()
		return err
	}
	p.states[i] = pieceWritten
	p.unsynced = append(p.unsynced, i)
	// Finish syncs what is complete.
	sync := p.rows != nil && len(p.unsynced) >= unsyncedMax && slices.Contains(p.states, pieceMissing)
	p.mu.Unlock()
	if err = p.hashAhead(i, data, hashedAhead); err == nil && sync {
		err = p.settle()
	}
	return err
}

// rowAt returns where the row of a piece stands.
func rowAt(i int) int64 { return rowsHead + int64(i)*rowSize }

// errSync says that a piece was written while a sync of others failed, which may have been told of its bytes.
var errSync = errors.New("a sync failed meanwhile")

// settle syncs the pieces that are written and then says so in their rows, unless another call does.
func (p *Partial) settle() error {
	p.mu.Lock()
	pieces := p.unsynced
	if p.settling || len(pieces) == 0 {
		p.mu.Unlock()
		return nil
	}
	p.settling = true
	p.unsynced = nil
	p.mu.Unlock()
	err := p.settlePieces(pieces)
	p.mu.Lock()
	p.settling = false
	p.mu.Unlock()
	return err
}

// settlePieces is settle for some pieces.
func (p *Partial) settlePieces(pieces []int) error {
	d := &p.s.disk
	if err := d.sync(p.f); err != nil {
		p.loseUnsynced()
		return err
	}
	p.mu.Lock()
	placed := p.placed
	for _, i := range pieces {
		p.states[i] = pieceSynced
	}
	p.mu.Unlock()
	for _, i := range pieces { // without it the row's checksum says as much
		if err := d.writeAt(pointSettle, p.rows, []byte{pieceSynced}, rowAt(i)); err != nil {
			return err
		}
	}
	err := d.sync(p.rows)
	if err == nil && !placed {
		err = d.syncFolder(folderOf(p.e.key))
	}
	p.mu.Lock()
	p.placed = p.placed || err == nil
	p.mu.Unlock()
	return err
}

// loseUnsynced has all pieces be missing that no sync has confirmed: one failed, the kernel says so once and then calls
// the pages clean, and nobody knows what the disk has of them.
func (p *Partial) loseUnsynced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.distrust = true
	p.failed++
	p.unsynced = nil
	for i, state := range p.states {
		if state != pieceWritten {
			continue
		}
		p.states[i] = pieceMissing
		if p.rows != nil {
			_, _ = p.rows.WriteAt([]byte{pieceMissing}, rowAt(i)) // a byte; else its checksum decides
		}
	}
}

// hashAhead hashes the pieces that follow those hashed so far, up to limit of them, unless another call does it. The
// i-th is in data, the others are read.
func (p *Partial) hashAhead(i int, data []byte, limit int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hashing {
		return nil
	}
	p.hashing = true
	defer func() { p.hashing = false }()
	for ; limit > 0 && p.hashed < len(p.states) && p.isThere(p.hashed); limit-- {
		n := p.hashed
		p.mu.Unlock()
		var err error
		if n == i {
			_, _ = p.sum.Write(data) // never fails
		} else {
			err = p.hashPiece(n)
		}
		p.mu.Lock()
		if err != nil {
			p.distrust = true // sum has a part of it
			return err
		}
		p.hashed++
	}
	return nil
}

// isThere reports whether a piece is there. REQUIRES: p.mu held.
func (p *Partial) isThere(i int) bool {
	return p.states[i] == pieceWritten || p.states[i] == pieceSynced
}

// hashPiece hashes a piece from the disk. REQUIRES: p.hashing is the caller's.
func (p *Partial) hashPiece(i int) error {
	n := p.s.pieceLen(p.e.size, i)
	got, err := io.CopyBuffer(p.sum, io.NewSectionReader(p.f, int64(i)*p.s.piece, n), make([]byte, copyBytes))
	if err == nil && got != n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Finish makes the blob whole, durably but in the Cache: Open has it from now on, and pins of it hold. Errors:
// ErrIncomplete, ErrFull, ErrBusy while pieces are being written; then it may be called again. With ErrWrongHash all
// that was written is removed.
func (p *Partial) Finish() error {
	p.mu.Lock()
	err := p.finishable()
	ended := p.done
	if err == nil && !ended {
		p.writers++
	}
	p.mu.Unlock()
	if err != nil || ended {
		return wrap("finish", p.e.key, err)
	}
	err = p.finish()
	p.stop()
	if errors.Is(err, ErrWrongHash) {
		err = errors.Join(err, p.Abandon())
	}
	return wrap("finish", p.e.key, err)
}

// finishable returns why Finish cannot go on. REQUIRES: p.mu held.
func (p *Partial) finishable() error {
	switch {
	case p.done && p.states == nil:
		return nil
	case p.done:
		return ErrClosed
	case p.writers > 0:
		return fmt.Errorf("%w: pieces are being written", ErrBusy)
	}
	missing := 0
	for i := range p.states {
		if !p.isThere(i) {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%w: %d of %d", ErrIncomplete, missing, len(p.states))
	}
	return nil
}

func (p *Partial) finish() error {
	p.mu.Lock()
	if p.distrust {
		p.distrust, p.hashed = false, 0
		p.sum.Reset()
	}
	p.mu.Unlock()
	if err := p.hashAhead(-1, nil, len(p.states)); err != nil {
		return err
	}
	if got := files.Hash(p.sum.Sum(nil)); got != p.e.Hash {
		return fmt.Errorf("%w: it has %s; what was received is removed", ErrWrongHash, got)
	}
	if err := errors.Join(p.syncWhole(), p.s.vouch(p.e.key)); err != nil {
		return err
	}
	synced := func(key) (named bool, err error) { return false, nil }
	if err := p.s.commit(p.e.key, fileOf(p.e.key)+partExt, p.e.size, synced); err != nil {
		return err
	}
	p.mu.Lock()
	p.done, p.states = true, nil
	p.mu.Unlock()
	p.leave()
	return nil
}

// leave has the index forget the partial blob, whose content is the whole one's, or has gone.
func (p *Partial) leave() {
	s := p.s
	s.mu.Lock()
	s.drop(p.e) // its bytes are the whole blob's, or were given back
	s.occupy(p.e.slot)
	s.mu.Unlock()
	_ = p.closeFiles()
	if p.rows != nil { // rows alone say nothing; of a small file each look at the disk counts
		_ = s.removeFiles(p.e.slot)
	}
	s.mu.Lock()
	s.vacate(p.e.slot)
	s.mu.Unlock()
	s.release(partialFiles)
}

// syncWhole syncs the content if it has to be durable.
func (p *Partial) syncWhole() error {
	if p.e.Space == Cache {
		return nil
	}
	err := p.s.disk.sync(p.f)
	if err != nil {
		p.loseUnsynced()
	}
	return err
}

// Close keeps what is there for a later Begin; of a blob of one piece there is nothing. It may be called again.
func (p *Partial) Close() error {
	if p.rows == nil {
		return p.Abandon()
	}
	if err := p.end(); err != nil {
		return ignoreEnded(err)
	}
	err := errors.Join(p.settle(), p.closeFiles())
	now := p.s.now()
	p.s.disk.touch(fileOf(p.e.key)+partExt, now)
	p.s.mu.Lock()
	p.e.used = now
	p.s.mu.Unlock()
	p.s.unhold(p.e)
	p.s.release(partialFiles)
	return wrap("close", p.e.key, err)
}

// Abandon removes what is there. It may be called again.
func (p *Partial) Abandon() error {
	if err := p.end(); err != nil {
		return ignoreEnded(err)
	}
	err := p.closeFiles()
	p.s.mu.Lock()
	p.s.evict(p.e)
	p.s.mu.Unlock()
	p.s.release(partialFiles)
	return errors.Join(err, p.s.discard([]*entry{p.e}))
}

// errEnded says that a partial blob has ended before.
var errEnded = errors.New("ended before")

// ignoreEnded returns nil for errEnded.
func ignoreEnded(err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// end marks the partial blob as ended, once nobody writes.
func (p *Partial) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.done:
		return errEnded
	case p.writers > 0:
		return wrap("close", p.e.key, fmt.Errorf("%w: pieces are being written", ErrBusy))
	}
	p.done = true
	return nil
}

func (p *Partial) closeFiles() (err error) {
	if p.f != nil {
		err = p.f.Close()
	}
	if p.rows != nil {
		err = errors.Join(err, p.rows.Close())
	}
	return err
}
