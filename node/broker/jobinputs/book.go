package jobinputs

import (
	"fmt"
	"sync"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// maxNamed is how many files the directories of all jobs that have not ended may name, each directory counted once:
// some 300 bytes of memory are held for each.
const maxNamed = 1_000_000

// Book has the files of jobs that have not ended. It is safe for concurrent use.
type Book struct {
	store *store.Store
	most  int

	mu    sync.RWMutex
	jobs  map[uint64]*job
	trees map[tree]*shared
	named int // by all trees
}

// job is one that names files.
type job struct {
	user   string
	direct []files.Hash
	trees  []tree
}

// shared is a directory of one job or of several.
type shared struct {
	jobs  int // Invariant: ≥ 1
	blobs map[files.Hash]struct{}
	named int
}

// NewBook returns a book without jobs.
func NewBook(s *store.Store) *Book {
	return &Book{store: s, most: maxNamed, jobs: map[uint64]*job{}, trees: map[tree]*shared{}}
}

// Keep pins the files of a job until Release. A job that is kept already stays as it is.
func (b *Book) Keep(num uint64, f *Found) { b.keep(num, f) }

// keep is Keep. It does nothing and returns false if a directory of which f has the name alone is not kept any more.
func (b *Book) keep(num uint64, f *Found) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[num] != nil || len(f.direct) == 0 {
		return true
	}
	for _, l := range f.trees {
		if l.kept && b.trees[l.tree] == nil {
			return false
		}
	}
	j := &job{user: f.user, direct: f.direct}
	b.store.Pin(pinOf(num), refsOf(f.user, f.direct)...)
	for _, l := range f.trees {
		b.share(l)
		j.trees = append(j.trees, l.tree)
	}
	b.jobs[num] = j
	return true
}

// share pins a directory's files for one job more. REQUIRES: b.mu held.
func (b *Book) share(l *listing) {
	if t := b.trees[l.tree]; t != nil {
		t.jobs++
		return
	}
	t := &shared{jobs: 1, blobs: make(map[files.Hash]struct{}, len(l.blobs)), named: len(l.paths)}
	hashes := make([]files.Hash, len(l.blobs))
	for i := range l.blobs {
		hashes[i] = l.blobs[i].Hash
		t.blobs[hashes[i]] = struct{}{}
	}
	b.store.Pin(l.pin(), refsOf(l.user, hashes)...)
	b.trees[l.tree] = t
	b.named += t.named
}

// Recall is Keep for a job of before the start. What it names and is not there, or cannot be read, is an error; the
// rest is kept.
func (b *Book) Recall(num uint64, user string, inputs []jobspec.Input) error {
	f, err := b.find(user, inputs, true)
	if !b.keep(num, f) { // a directory has gone with another job meanwhile
		f, err = b.find(user, inputs, false)
		b.keep(num, f)
	}
	return err
}

// find returns what inputs name: of directories that are kept already the name alone, if that will do.
func (b *Book) find(user string, inputs []jobspec.Input, names bool) (f *Found, err error) {
	f = &Found{user: user}
	for i := range inputs {
		in := &inputs[i]
		if in.Blob.Hash == (files.Hash{}) {
			continue
		}
		f.direct = append(f.direct, in.Blob.Hash)
		if in.From != jobspec.FromDirectory && in.From != jobspec.FromEach ||
			names && b.knows(tree{user, in.Blob.Hash}, f) {
			continue
		}
		l, cause := read(b.store, tree{user, in.Blob.Hash}, files.MaxEntries)
		if cause != nil {
			err = fmt.Errorf("inputs.%d: %w", i, cause)
			continue
		}
		f.trees = append(f.trees, l)
	}
	return f, err
}

// knows adds a directory that is kept already to what was found.
func (b *Book) knows(t tree, f *Found) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.trees[t] == nil {
		return false
	}
	f.trees = append(f.trees, &listing{tree: t, kept: true})
	return true
}

// Release ends what Keep began; for others it does nothing.
func (b *Book) Release(num uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[num]
	if j == nil {
		return
	}
	delete(b.jobs, num)
	b.store.Unpin(pinOf(num))
	for _, t := range j.trees {
		s := b.trees[t]
		if s.jobs--; s.jobs == 0 {
			delete(b.trees, t)
			b.named -= s.named
			b.store.Unpin(t.pin())
		}
	}
}

// Names returns the user of a job that is kept, and whether the job names a blob, itself or in a directory.
func (b *Book) Names(num uint64, h files.Hash) (user string, yes bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	j := b.jobs[num]
	if j == nil {
		return "", false
	}
	for _, d := range j.direct {
		if d == h {
			return j.user, true
		}
	}
	for _, t := range j.trees {
		if _, yes = b.trees[t].blobs[h]; yes {
			return j.user, true
		}
	}
	return j.user, false
}

// Jobs returns the numbers of the jobs that are kept, in no order.
func (b *Book) Jobs() []uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	nums := make([]uint64, 0, len(b.jobs))
	for num := range b.jobs {
		nums = append(nums, num)
	}
	return nums
}

func pinOf(num uint64) string { return fmt.Sprintf("job/%d", num) }

func (t tree) pin() string { return "tree/" + store.OwnOf(t.user).Owner + "/" + t.manifest.String() }

func refsOf(user string, hashes []files.Hash) []store.Ref {
	at, refs := store.OwnOf(user), make([]store.Ref, len(hashes))
	for i, h := range hashes {
		refs[i] = store.Ref{Place: at, Hash: h}
	}
	return refs
}
