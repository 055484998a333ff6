package books

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/executor/outputs"
)

// batch is as much output as may be in memory.
type batch struct {
	items []outputs.Item
	read  []Kept // those of items, and those that need none
	later []Kept // could not be read now
}

// maxBatchItems bounds a batch of small outputs.
const maxBatchItems = 4096

// read reads the outputs of the first attempts of a list.
func (k *keeper) read(list []Kept) (b batch) {
	size := 0
	for _, one := range list {
		if size >= maxBatch || len(b.read)+len(b.later) == maxBatchItems {
			break
		}
		if one.stored || one.old && (k.isGone(one) || k.wasRemoved(one)) {
			b.read = append(b.read, one)
			continue
		}
		it, err := k.item(one)
		if err != nil {
			k.log.Warn().Err(err).Str("attempt", one.Name).Msg("output of an ended attempt cannot be read now, will be tried again")
			b.later = append(b.later, one)
			continue
		}
		size += len(it.Streams[0].Text) + len(it.Streams[1].Text)
		b.items, b.read = append(b.items, it), append(b.read, one)
	}
	return b
}

// isGone reports whether an attempt of an earlier life has nothing here and would be the
// next to be removed: it was, longer ago than the store remembers.
func (k *keeper) isGone(one Kept) bool {
	if st := k.store.Stats(); time.Since(one.At) < st.Keep && !one.At.Before(st.Oldest) || k.store.Has(one.ID) {
		return false
	}
	for n, size := range one.Out {
		if _, err := os.Lstat(k.shelf.Output(one, n)); size != 0 && !errors.Is(err, os.ErrNotExist) {
			return false
		}
	}
	return true
}

// wasRemoved reports whether the store has had it, and has it no more.
func (k *keeper) wasRemoved(one Kept) bool {
	if k.store.Has(one.ID) {
		return false
	}
	_, removed := k.store.Removed(one.ID.Job, one.ID.Task, one.ID.Attempt)
	return removed
}

// item reads an attempt's output. An error may go by itself; of one that stays the
// item's note says.
func (k *keeper) item(one Kept) (outputs.Item, error) {
	it := outputs.Item{ID: one.ID, At: one.At, Note: one.Note}
	for n, size := range one.Out {
		if size == 0 || one.Note != "" {
			continue
		}
		stream, err := readStream(k.shelf.Output(one, n), size)
		if errors.Is(err, os.ErrNotExist) && k.store.Has(one.ID) {
			continue // kept before a crash
		}
		if mayPass(err) && time.Since(one.At) < k.store.Stats().Keep {
			return it, err
		}
		if err != nil {
			it.Streams, it.Note = [2]outputs.Stream{}, "its output could not be kept: "+err.Error()
			break
		}
		it.Streams[n] = stream
	}
	return it, nil
}

// mayPass reports whether an error is of the machine at this moment, and not of the file.
func mayPass(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && !errors.Is(err, os.ErrNotExist) && number != syscall.ELOOP && number != syscall.ENXIO && number != syscall.ENOTDIR
}

// readStream reads a small output; a large one is to be taken over as a file.
func readStream(path string, size int64) (outputs.Stream, error) {
	f, err := OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return outputs.Stream{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return outputs.Stream{}, err
	}
	// The size is the handler's word, which tasks may have overwritten.
	if size = min(size, st.Size()); size < 0 {
		return outputs.Stream{}, fmt.Errorf("%s has %d bytes by its record", path, size)
	}
	if size > outputs.MaxInline {
		return outputs.Stream{Path: path, Size: size}, nil
	}
	b := make([]byte, size)
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return outputs.Stream{Text: b[:n]}, err
}
