package attempts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
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
	size, st := 0, k.store.Stats()
	var why error // of the first that cannot be read
	for _, one := range list {
		if size >= maxBatch || len(b.read)+len(b.later) == maxBatchItems {
			break
		}
		it, done, err := k.item(one, &st)
		switch {
		case err != nil:
			if b.later = append(b.later, one); why == nil {
				why = err
			}
			continue
		case !done:
			size += len(it.Streams[0].Text) + len(it.Streams[1].Text)
			b.items = append(b.items, it)
		}
		b.read = append(b.read, one)
	}
	if why != nil { // one line for all: what passes is seldom of one attempt
		k.log.Warn().Err(why).Str("attempt", b.later[0].Name).Int("attempts", len(b.later)).
			Msg("output of ended attempts cannot be read now, will be tried again")
	}
	return b
}

// item reads an attempt's output; done: there is nothing to be kept of it. An error may
// go by itself; of one that stays the item's note says.
func (k *keeper) item(one Kept, st *executor.OutputStats) (it outputs.Item, done bool, err error) {
	if one.stored {
		return it, true, nil
	}
	fate := sync.OnceValues(func() (outputs.Fate, error) { return k.store.FateOf(one.ID) })
	if one.old {
		known, err := fate()
		if err != nil || known == outputs.Removed || known == outputs.Unknown && k.isGone(one, st) {
			return it, err == nil, err
		}
	}
	it = outputs.Item{ID: one.ID, At: one.At, Note: one.Note}
	for n, size := range one.Out {
		if size == 0 || one.Note != "" {
			continue
		}
		stream, err := readStream(k.shelf.Output(one, n), size)
		if errors.Is(err, os.ErrNotExist) {
			known, unknown := fate()
			if known == outputs.Kept { // kept before a crash, or a moment ago
				continue
			}
			if unknown != nil {
				err = unknown
			}
		}
		if outputs.MayPass(err) && time.Since(one.At) < st.Keep {
			return it, false, err
		}
		if err != nil {
			it.Streams, it.Note = [2]outputs.Stream{}, "its output could not be kept: "+err.Error()
			break
		}
		it.Streams[n] = stream
	}
	return it, false, nil
}

// isGone reports whether an attempt of a previous run has nothing here and would be the
// next to be removed: it was, longer ago than the store remembers.
func (k *keeper) isGone(one Kept, st *executor.OutputStats) bool {
	if time.Since(one.At) < st.Keep && !one.At.Before(st.Oldest) {
		return false
	}
	for n, size := range one.Out {
		if _, err := os.Lstat(k.shelf.Output(one, n)); size != 0 && !errors.Is(err, os.ErrNotExist) {
			return false
		}
	}
	return true
}

// readStream reads a small output; a large one is to be taken over as a file.
func readStream(path string, size int64) (outputs.Stream, error) {
	f, err := outputs.OpenRegular(path, os.O_RDONLY)
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
