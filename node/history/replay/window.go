package replay

import (
	"crypto/sha256"
	"errors"
	"io"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/internal/parallel"
)

// Bounds of what is read ahead: two windows are in memory.
const (
	windowEntries = 256
	windowBytes   = 4 << 20
)

// window is some entries in a row, decoded, and verified as far as the keys are known.
type window struct {
	entries []entry
	next    *history.Record // behind them, if it is no entry
	err     error           // why there is no record behind them: io.EOF, or that it cannot be read
	done    int64           // bytes that were read
}

// entry is one of a window.
type entry struct {
	number uint64
	raw    []byte
	sum    [sha256.Size]byte
	batch  *command.Batch
	unread error
}

// keyring is the keys of now: it is replaced, never changed.
type keyring struct {
	federation [16]byte
	of         map[string]signature.Key
}

// readWindow reads the next entries and verifies their bundles by the keys of some moment before. The state verifies
// again what is signed by another key.
func readWindow(t *history.Stream, keys keyring) *window {
	w := &window{}
	for size := 0; len(w.entries) < windowEntries && size < windowBytes; {
		rec, err := t.Next()
		if err != nil {
			w.err = err
			break
		}
		if rec.Kind == history.KindStatement { // collected before
			continue
		}
		if rec.Kind != history.KindEntry {
			w.next = &rec
			break
		}
		w.entries = append(w.entries, entry{number: rec.Number, raw: rec.Contents})
		size += len(rec.Contents)
	}
	w.done = t.Done()
	w.prove(keys)
	return w
}

// prove does what needs no state.
func (w *window) prove(keys keyring) {
	parallel.Each(len(w.entries), func(i int) {
		e := &w.entries[i]
		e.sum = sha256.Sum256(e.raw)
		e.batch, e.unread = command.DecodeBatch(e.raw)
	})
	var bundles []*command.Bundle
	for i := range w.entries {
		if b := w.entries[i].batch; b != nil {
			for k := range b.Bundles {
				bundles = append(bundles, &b.Bundles[k])
			}
		}
	}
	parallel.Each(len(bundles), func(i int) {
		b := bundles[i]
		if key, known := keys.of[b.Site]; known {
			b.IsBy(keys.federation, key) // which it remembers
		}
	})
}

// stateReader reads a state up to the record that says that it is complete.
type stateReader struct {
	t     *history.Stream
	rest  []byte
	begun *history.Record
}

var errState = errors.New("a state is not complete")

// Read implements io.Reader.
func (r *stateReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.begun != nil {
			return 0, io.EOF
		}
		rec, err := r.t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, errState
		case err != nil:
			return 0, err
		case rec.Kind == history.KindBegun:
			r.begun = &rec
		case rec.Kind == history.KindState:
			r.rest = rec.Contents
		default:
			return 0, errState
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
