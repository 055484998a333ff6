package stagein

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// errWrong says that an owner has sent other bytes than those that its job names, also when it was asked again.
var errWrong = errors.New("its owner's broker sent other bytes than its hash says, twice")

// blob is how the owner is asked for a blob.
func (g *gathering) blob(b files.Blob) transfer.Blob {
	return transfer.Blob{Attempt: g.ref, What: transfer.Input, Hash: b.Hash, Size: b.Size}
}

// where returns how the owner's broker is reached.
func (g *gathering) where() (site, addr string, index uint64, err error) {
	site = g.ref.Job.Site
	if addr, index = g.s.cfg.Where(site); addr == "" {
		err = fmt.Errorf("%w: it has registered no peer address", transfer.ErrUnreachable)
	}
	return site, addr, index, err
}

// pullSmall brings blobs of a piece at most. What has another hash is fetched once more.
func (g *gathering) pullSmall(ctx context.Context, blobs []files.Blob) error {
	wrong, err := g.pullBatch(ctx, blobs)
	if err == nil && len(wrong) > 0 {
		wrong, err = g.pullBatch(ctx, wrong)
	}
	if err == nil && len(wrong) > 0 {
		return fault(inputs.Refused, "fetch file %s: %w", blobName(wrong[0].Hash), errWrong)
	}
	return err
}

// pullBatch brings blobs and returns those that had another hash.
func (g *gathering) pullBatch(ctx context.Context, blobs []files.Blob) (wrong []files.Blob, err error) {
	ask := make([]transfer.Blob, 0, len(blobs))
	asked := make([]files.Blob, 0, len(blobs))
	for _, b := range blobs {
		if b.Size > 0 {
			ask, asked = append(ask, g.blob(b)), append(asked, b)
		} else if err = g.keep(b, nil); errors.Is(err, store.ErrWrongHash) {
			return nil, fault(inputs.Broken, "file %s: no file of 0 bytes has that hash", blobName(b.Hash))
		} else if err != nil {
			return nil, err
		}
	}
	if len(ask) == 0 {
		return nil, nil
	}
	site, addr, index, err := g.where()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	err = g.s.cfg.Transfers.PullBatch(ctx, site, addr, index, ask, func(i int, content []byte, refused error) error {
		if refused != nil {
			return refused
		}
		kept := g.keep(asked[i], content)
		if errors.Is(kept, store.ErrWrongHash) {
			mu.Lock()
			defer mu.Unlock()
			wrong = append(wrong, asked[i])
			return nil
		}
		return kept
	})
	return wrong, g.named(err)
}

// named adds to an error whose it is.
func (g *gathering) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fetch its files from %s: %w", g.ref.Job.Site, err)
}

// keep puts a blob of a piece at most into the cache, if it is what its hash says.
func (g *gathering) keep(b files.Blob, content []byte) error {
	p, err := g.s.cfg.Store.Begin(g.at, b)
	if err != nil {
		return err
	}
	defer p.Close()
	if len(p.Missing()) > 0 {
		if err = p.WritePiece(0, content); err != nil {
			return err
		}
	}
	if err = p.Finish(); err != nil {
		return err
	}
	g.p.add(b.Size, 0)
	g.p.done(1)
	return nil
}

// pullLarge brings a blob of several pieces, those that are not here yet. If it has another hash it is fetched once
// more.
func (g *gathering) pullLarge(ctx context.Context, b files.Blob) error {
	for tries := 0; ; tries++ {
		err := g.pullPieces(ctx, b)
		switch {
		case !errors.Is(err, store.ErrWrongHash):
			return err
		case tries > 0:
			return fault(inputs.Refused, "fetch file %s: %w", blobName(b.Hash), errWrong)
		}
	}
}

func (g *gathering) pullPieces(ctx context.Context, b files.Blob) error {
	p, err := g.s.cfg.Store.Begin(g.at, b)
	if err != nil {
		return err
	}
	defer p.Close()
	site, addr, index, err := g.where()
	if err != nil {
		return err
	}
	there := b.Size
	for _, i := range p.Missing() {
		there -= min(files.PieceBytes, b.Size-int64(i)*files.PieceBytes)
	}
	g.p.are(0, there)
	to := transfer.Counted(p, func(n int) { g.p.add(int64(n), 0) })
	if err = g.s.cfg.Transfers.Pull(ctx, site, addr, index, g.blob(b), to); err != nil {
		return g.named(err)
	}
	if err = p.Finish(); err != nil {
		return err
	}
	g.p.done(1)
	return nil
}
