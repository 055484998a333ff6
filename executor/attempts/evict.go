package attempts

import (
	"context"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// Folders are those of a handler whose attempts have one each: attempts/NAME below
// the handler's own folder, with a file for each stream of output.
type Folders struct {
	dir   string
	aside *Aside
}

// OpenFolders makes the folder that they are in.
func OpenFolders(k Keeping) (Folders, error) {
	f := Folders{dir: filepath.Join(k.Dir, "attempts"), aside: NewAside(k)}
	return f, f.aside.Folder(f.dir)
}

// Of returns the folder of an attempt.
func (f Folders) Of(name string) string { return filepath.Join(f.dir, name) }

// Output returns a [Shelf.Output].
func (f Folders) Output(k Kept, stream int) string {
	return filepath.Join(f.Of(k.Name), Streams[stream])
}

// Adopt is [Aside.AdoptEach] for them.
func (f Folders) Adopt(ctx context.Context, adopt func(name string) error) error {
	return f.aside.AdoptEach(ctx, Adoption{Dir: f.dir, What: "attempt", One: adopt})
}

// Run is [Aside.Run] for those that were put aside.
func (f Folders) Run(quit <-chan struct{}) { f.aside.Run(quit) }

// Evict is the [Shelf.Drop] of a handler whose attempts have folders: it drops the
// last trace of an attempt, once nothing is done about it any more. cleaned returns
// what is closed then; dropped is called with the handler's lock held.
func (a *Set[W]) Evict(k Kept, f Folders, cleaned func(W) <-chan struct{}, dropped func(W)) bool {
	a.mu.Lock()
	w := a.by[k.Name]
	a.mu.Unlock()
	if w == *new(W) {
		return true
	}
	select {
	case <-cleaned(w):
	default:
		return false
	}
	dir := f.Of(k.Name)
	if err := watchdog.RemoveTree(dir); err != nil { // files of another user, mostly
		f.aside.Put(dir, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, k.Name)
	dropped(w)
	return true
}
