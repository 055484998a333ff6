package stagein

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

const (
	// longestPause is that between two tries with an owner that has sent something before.
	longestPause = 16 * time.Second
	// busyTries is how often a store is tried, a second apart, that has too many files open.
	busyTries = 10
)

// Fetch brings all files of an attempt of another site's job into the cache, and returns how many bytes they have. They
// stay until Drop. The error is an *Error; what has come by then stays for the next attempt, as long as there is room.
func (s *Stager) Fetch(ctx context.Context, o Order) (int64, error) {
	n, err := s.fetch(ctx, &o)
	return n, classify(ctx, err)
}

func (s *Stager) fetch(ctx context.Context, o *Order) (int64, error) {
	at, ref, err := s.place(o.ID)
	if err != nil {
		return 0, err
	}
	site, leave := s.join(ref.Job.Site)
	defer leave()
	p := &progress{tell: o.Tell}
	p.say("waits for its turn to fetch its files from " + ref.Job.Site)
	if err = enter(ctx, site.stagings); err != nil {
		return 0, err
	}
	defer func() { <-site.stagings }()
	g := &gathering{s: s, site: site, at: at, ref: ref, by: pinOf(o.ID), p: p}
	manifests, err := manifestsOf(o.Inputs)
	if err == nil {
		err = g.bring(ctx, manifests)
	}
	if err != nil {
		return 0, err
	}
	blobs, sum, err := s.needed(ctx, at, o)
	if errors.Is(err, store.ErrDamaged) { // it counts as missing now
		if err = g.bring(ctx, manifests); err == nil {
			blobs, sum, err = s.needed(ctx, at, o)
		}
	}
	if err != nil {
		return 0, err
	}
	p.begin(blobs)
	return sum, g.bring(ctx, blobs)
}

// manifestsOf returns those that inputs name; what an owner says of sizes is checked first.
func manifestsOf(in []jobspec.Input) (blobs []files.Blob, err error) {
	for i := range in {
		x := &in[i]
		if x.From == jobspec.FromContent {
			continue
		}
		manifest := x.From == jobspec.FromDirectory || x.From == jobspec.FromEach
		if x.Blob.Check() != nil || x.Blob.Hash == (files.Hash{}) || manifest && x.Blob.Size > files.MaxManifest {
			return nil, fault(inputs.Broken, "input %q: its owner's broker says that it has %d bytes", x.Path, x.Blob.Size)
		}
		if manifest {
			blobs = append(blobs, x.Blob)
		}
	}
	return blobs, nil
}

// needed returns the blobs of all files of an attempt, each once, and how many bytes the files have.
func (s *Stager) needed(ctx context.Context, at store.Place, o *Order) (blobs []files.Blob, sum int64, err error) {
	b := bounds{files: executor.MaxFiles, contents: maxContents, bytes: s.cfg.LendMax - o.OutputBytes}
	seen := map[files.Hash]bool{}
	err = s.walk(ctx, at, o, b, func(x found) error {
		if x.inline {
			sum += int64(len(x.content))
			return nil
		}
		sum += x.blob.Size
		if !seen[x.blob.Hash] {
			seen[x.blob.Hash] = true
			blobs = append(blobs, x.blob)
		}
		return nil
	})
	return blobs, sum, err
}

// gathering is the fetching of blobs for one attempt.
type gathering struct {
	s    *Stager
	site *owner
	at   store.Place
	ref  command.AttemptRef
	by   string
	p    *progress
}

// flight is a blob that is being pulled for one attempt; others that need it wait for its end.
type flight struct {
	done chan struct{}
	err  error // once done is closed
}

// bring pins blobs, with room for those to come, and has them here, by pulling what nobody pulls already.
func (g *gathering) bring(ctx context.Context, blobs []files.Blob) error {
	refs := make([]store.Ref, len(blobs))
	size := make(map[store.Ref]int64, len(blobs))
	for i, b := range blobs {
		refs[i] = store.Ref{Place: g.at, Hash: b.Hash}
		size[refs[i]] = b.Size
	}
	if err := g.confirm(ctx, blobs); err != nil {
		return err
	}
	if err := g.s.cfg.Store.Reserve(g.by, g.at, blobs, g.s.cfg.Free()); err != nil {
		return err
	}
	missing := g.s.cfg.Store.Pin(g.by, refs...)
	g.p.are(len(refs)-len(missing), sumOf(refs, size)-sumOf(missing, size))
	for len(missing) > 0 {
		mine, others := g.s.claim(missing)
		err := g.pull(ctx, mine, size)
		g.s.land(mine, err)
		if err != nil {
			return err
		}
		for ref, f := range others {
			if err = f.wait(ctx); err != nil {
				return err
			}
			g.p.add(0, size[ref])
		}
		missing = g.s.cfg.Store.Pin(g.by, missing...)
	}
	return nil
}

// confirm has the store look at what it is not sure of.
func (g *gathering) confirm(ctx context.Context, blobs []files.Blob) error {
	hashes := make([]files.Hash, len(blobs))
	for i, b := range blobs {
		hashes[i] = b.Hash
	}
	for busy := 0; ; busy++ {
		err := g.s.cfg.Store.Confirm(ctx, g.at, hashes...)
		if !errors.Is(err, store.ErrBusy) || busy == busyTries {
			return err
		}
		if err = g.s.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func sumOf(refs []store.Ref, size map[store.Ref]int64) (sum int64) {
	for _, r := range refs {
		sum += size[r]
	}
	return sum
}

// claim parts blobs into those that the caller is to pull, and those that others pull.
func (s *Stager) claim(refs []store.Ref) (mine []store.Ref, others map[store.Ref]*flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others = map[store.Ref]*flight{}
	for _, r := range refs {
		if f := s.flights[r]; f != nil {
			others[r] = f
			continue
		}
		s.flights[r] = &flight{done: make(chan struct{})}
		mine = append(mine, r)
	}
	return mine, others
}

// land tells those who wait for blobs how their pull ended.
func (s *Stager) land(refs []store.Ref, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range refs {
		f := s.flights[r]
		f.err = err
		close(f.done)
		delete(s.flights, r)
	}
}

// wait waits for another one's pull. If its owner is at fault nobody else asks again at once; else whoever waits tries
// by itself: the other attempt may have ended.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var known *Error
	if errors.As(classify(context.Background(), f.err), &known) && known.Fault == inputs.Away {
		return f.err
	}
	return nil
}

// pull brings blobs, again and again as long as something comes.
func (g *gathering) pull(ctx context.Context, refs []store.Ref, size map[store.Ref]int64) error {
	if len(refs) == 0 {
		return nil
	}
	if err := enter(ctx, g.site.pulls); err != nil {
		return err
	}
	defer func() { <-g.site.pulls }()
	busy := 0
	for wait := time.Second; ; wait *= 2 {
		before := g.p.count()
		err := g.pullOnce(ctx, refs, size)
		came := g.p.count() > before
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrBusy) && busy < busyTries:
			busy++
			wait = time.Second
		case !errors.Is(err, transfer.ErrUnreachable) || g.p.count() == 0:
			return err
		case came:
			wait = time.Second
		case wait > longestPause:
			return err
		}
		if err := g.s.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// pullOnce brings those blobs that are still missing: small ones together, then each large one.
func (g *gathering) pullOnce(ctx context.Context, refs []store.Ref, size map[store.Ref]int64) error {
	var small, large []files.Blob
	for _, r := range g.s.cfg.Store.Pin(g.by, refs...) {
		if b := (files.Blob{Hash: r.Hash, Size: size[r]}); b.Size <= files.PieceBytes {
			small = append(small, b)
		} else {
			large = append(large, b)
		}
	}
	err := g.pullSmall(ctx, small)
	for ; err == nil && len(large) > 0; large = slices.Delete(large, 0, 1) {
		err = g.pullLarge(ctx, large[0])
	}
	return err
}
