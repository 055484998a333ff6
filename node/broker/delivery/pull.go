package delivery

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// smallBlob is up to how many bytes a blob comes whole, beside others; larger ones come in pieces, and are resumed.
const smallBlob = 1 << 20

// want is a blob that a delivery lacks.
type want struct {
	f    *fetched
	what transfer.What
	blob files.Blob
}

func (w *want) ref() store.Ref { return store.Ref{Place: w.f.at, Hash: w.blob.Hash} }

// errOther reports bytes that are not what their site said.
var errOther = errors.New("it sends something else than it said")

// fetchManifests fetches the manifests that are not here, many in a request.
func (r *round) fetchManifests(list []*fetched) {
	var wants []want
	for _, f := range list {
		at := store.Ref{Place: f.at, Hash: f.Output.Manifest}
		if missing := r.cfg.Store.Pin(r.pinOf(f.delivery), at); len(missing) > 0 {
			wants = append(wants, want{f, transfer.Manifest, f.manifest()})
		}
	}
	small, large := parted(wants)
	r.pullSmall(small)
	r.pullLarge(large)
}

// fetchBlobs fetches what is not here of what manifests name, and keeps what is whole: what has large ones last.
func (r *round) fetchBlobs(list []*fetched) {
	var wants []want
	for _, f := range list {
		if f.err == nil {
			wants = r.addMissing(wants, f)
		}
	}
	small, large := parted(wants)
	r.pullSmall(small)
	last := map[*fetched][]want{}
	for _, w := range large {
		last[w.f] = append(last[w.f], w)
	}
	var rest, first []*fetched
	for _, f := range list {
		if len(last[f]) > 0 && f.err == nil {
			rest = append(rest, f)
		} else {
			first = append(first, f)
		}
	}
	r.keep(first...)
	for _, f := range rest {
		r.pullLarge(last[f])
		r.keep(f)
	}
}

func (r *round) addMissing(wants []want, f *fetched) []want {
	hashes, refs := make([]files.Hash, len(f.blobs)), make([]store.Ref, len(f.blobs))
	for i, b := range f.blobs {
		hashes[i], refs[i] = b.Hash, store.Ref{Place: f.at, Hash: b.Hash}
	}
	r.cfg.Store.Pin(r.pinOf(f.delivery), refs...)
	for i, size := range r.cfg.Store.Sizes(f.at, hashes...) {
		switch {
		case size < 0:
			wants = append(wants, want{f, transfer.Output, f.blobs[i]})
		case size != f.blobs[i].Size:
			f.err = final(fmt.Errorf("its manifest says that %s has %d bytes, and it has %d", hashes[i], f.blobs[i].Size, size))
		}
	}
	return wants
}

// parted parts what is wanted by size, each small blob once.
func parted(wants []want) (small, large []want) {
	asked := map[store.Ref]bool{}
	for _, w := range wants {
		switch {
		case w.blob.Size > smallBlob:
			large = append(large, w)
		case !asked[w.ref()]:
			small = append(small, w)
			asked[w.ref()] = true
		}
	}
	return small, large
}

// pullLarge brings large blobs, one after the other; with the first that does not come it ends.
func (r *round) pullLarge(wants []want) {
	for i := range wants {
		w := &wants[i]
		if w.f.err != nil || r.cfg.Store.Sizes(w.f.at, w.blob.Hash)[0] >= 0 {
			continue
		}
		w.f.err = r.pullPieces(w)
		r.note(w.f.err)
	}
}

// note notes that the site cannot be reached.
func (r *round) note(err error) {
	if errors.Is(err, transfer.ErrUnreachable) {
		r.away = err
	}
}

// pullSmall brings small blobs together.
func (r *round) pullSmall(wants []want) {
	if len(wants) == 0 {
		return
	}
	list := make([]transfer.Blob, len(wants))
	for i := range wants {
		list[i] = blobOf(wants[i].f.delivery, wants[i].what, wants[i].blob)
	}
	var mu sync.Mutex // of errors and of came
	came := make([]bool, len(wants))
	err := r.batch(list, func(i int, content []byte, refused error) error {
		w := &wants[i]
		err := refused
		if err == nil {
			err = r.put(w, content)
		}
		mu.Lock()
		defer mu.Unlock()
		if came[i] = true; err != nil && w.f.err == nil {
			w.f.err = err
		}
		if errors.Is(err, store.ErrFull) { // nothing else has room, either
			return err
		}
		return nil
	})
	r.note(err)
	for i := range wants {
		if err != nil && !came[i] && wants[i].f.err == nil {
			wants[i].f.err = err
		}
	}
}

func (r *round) batch(list []transfer.Blob, take func(i int, content []byte, refused error) error) error {
	if r.addr == "" {
		return errNoAddress
	}
	return r.cfg.Transfers.PullBatch(r.ctx, r.site, r.addr, r.entry, list, take)
}

var errNoAddress = fmt.Errorf("%w: it has registered no peer address", transfer.ErrUnreachable)

// put keeps a blob that has come whole, if it is the one.
func (r *round) put(w *want, content []byte) error {
	if files.BlobOf(content) != w.blob {
		return errOther
	}
	if _, err := r.cfg.Store.Put(w.f.ctx, w.f.at, bytes.NewReader(content), w.blob.Size); err != nil {
		return err
	}
	r.moved(w.f.delivery, len(content))
	return nil
}

// pullPieces brings a blob in pieces, those that are not here from before.
func (r *round) pullPieces(w *want) error {
	if r.addr == "" {
		return errNoAddress
	}
	p, err := r.cfg.Store.Begin(w.f.at, w.blob)
	if err != nil {
		return err
	}
	defer p.Close()
	r.setBegun(w, true)
	blob := blobOf(w.f.delivery, w.what, w.blob)
	to := transfer.Counted(p, func(n int) { r.moved(w.f.delivery, n) })
	if err = r.cfg.Transfers.Pull(w.f.ctx, r.site, r.addr, r.entry, blob, to); err != nil {
		return err
	}
	if err = p.Finish(); errors.Is(err, store.ErrWrongHash) {
		err = errOther
	}
	if err == nil {
		r.setBegun(w, false)
	}
	return err
}

// setBegun notes whether a blob is there in part.
func (r *round) setBegun(w *want, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(w.f.begun, w.ref())
	switch {
	case begun && i < 0:
		w.f.begun = append(w.f.begun, w.ref())
	case !begun && i >= 0:
		w.f.begun = slices.Delete(w.f.begun, i, i+1)
	}
}
