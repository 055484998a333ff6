package jobinputs

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// resolved finds inputs that are all there.
func (r *rig) resolved(user string, inputs ...jobspec.Input) *Found {
	r.Helper()
	f, err := r.Begin().Resolve(user, specOf(inputs...))
	if err != nil {
		r.Fatal(err)
	}
	return f
}

// TestFilesStayAsLongAsTheirJobs: of each job, and what several name as long as the last of them.
func TestFilesStayAsLongAsTheirJobs(t *testing.T) {
	r := newRig(t)
	one, dir := r.put("ann", "one"), r.manifest("ann", "a", "b")
	r.put("ann", "named by nobody")
	r.Keep(1, r.resolved("ann", file("x", one), folder("d", dir)))
	r.Keep(2, r.resolved("ann", folder("d", dir)))
	for _, c := range []struct {
		release uint64
		left    int
	}{{0, 4}, {1, 3}, {1, 3}, {2, 0}} {
		r.Release(c.release)
		if r.collect(); r.has() != c.left {
			t.Errorf("without job %d, %d blobs are left, want %d", c.release, r.has(), c.left)
		}
	}
	if len(r.Jobs()) != 0 || r.named != 0 || len(r.trees) != 0 {
		t.Errorf("left behind: %v, %d files", r.Jobs(), r.named)
	}
}

// TestWhatAJobNames is what may be given to who runs it: nothing of another job, or of another user.
func TestWhatAJobNames(t *testing.T) {
	r := newRig(t)
	one, dir, other := r.put("ann", "one"), r.manifest("ann", "a"), r.put("ann", "other")
	r.Keep(7, r.resolved("ann", file("x", one), folder("d", dir)))
	r.Keep(8, r.resolved("ann", file("x", other)))
	for h, want := range map[files.Hash]bool{
		one.Hash: true, dir.Hash: true, files.HashOf([]byte(big("a"))): true, other.Hash: false, {}: false,
	} {
		if user, yes := r.Names(7, h); yes != want || user != "ann" {
			t.Errorf("%s: %t, of %q", h, yes, user)
		}
	}
	if _, yes := r.Names(9, one.Hash); yes {
		t.Error("an unknown job names something")
	}
}

// TestRecalledAtAStart: jobs of before have their files again; what cannot be read of them takes nothing else along.
func TestRecalledAtAStart(t *testing.T) {
	r := newRig(t)
	one, dir, gone := r.put("", "one"), r.manifest("", "a", "b"), files.BlobOf([]byte("gone"))
	r.Book = NewBook(r.files)
	if err := r.Recall(1, "", []jobspec.Input{file("x", one), folder("d", dir)}); err != nil {
		t.Fatal(err)
	}
	if err := r.Recall(2, "", []jobspec.Input{folder("d", dir), folder("e", gone), file("x", one)}); err == nil {
		t.Error("nothing is said of a manifest that is gone")
	}
	if r.collect(); r.has() != 4 {
		t.Errorf("%d blobs are left of four", r.has())
	}
	r.Release(1)
	if r.collect(); r.has() != 4 {
		t.Errorf("%d blobs are left of four that the other job names", r.has())
	}
	r.Release(2)
	if r.collect(); r.has() != 0 {
		t.Errorf("%d blobs are left", r.has())
	}
}

// TestDirectoryGoesWithAnotherJob: a directory that a job shares with one that ends at that very moment is read again,
// and not kept without its files.
func TestDirectoryGoesWithAnotherJob(t *testing.T) {
	r := newRig(t)
	inputs := []jobspec.Input{folder("d", r.manifest("", "a", "b"))}
	if err := r.Recall(1, "", inputs); err != nil {
		t.Fatal(err)
	}
	f, err := r.find("", inputs, true)
	if r.Release(1); err != nil || r.keep(2, f) {
		t.Fatalf("kept by its name alone, %v", err)
	}
	if err = r.Recall(2, "", inputs); err != nil {
		t.Fatal(err)
	}
	if _, yes := r.Names(2, files.HashOf([]byte(big("a")))); !yes {
		t.Error("its files are not named")
	}
}

// TestBookAgainstModel: whatever comes and ends in whatever order, what live jobs name stays, and the rest goes.
func TestBookAgainstModel(t *testing.T) {
	r := newRig(t)
	rapid.Check(t, func(rt *rapid.T) {
		r.Book = NewBook(r.files)
		contents := []string{"a", "b", "c"}
		live := map[uint64][]int{}
		var dirs, known [3]files.Blob // that are there; their names
		next := uint64(0)
		rt.Repeat(map[string]func(*rapid.T){
			"submit": func(rt *rapid.T) {
				names := rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 1, 3, rapid.ID[int]).Draw(rt, "names")
				var inputs []jobspec.Input
				for _, n := range names {
					if dirs[n] == (files.Blob{}) {
						dirs[n] = r.manifest("", contents[n], "shared")
						known[n] = dirs[n]
					}
					inputs = append(inputs, folder(contents[n], dirs[n]))
				}
				next++
				r.Keep(next, r.resolved("", inputs...))
				live[next] = names
			},
			"end": func(rt *rapid.T) {
				num := rapid.Uint64Range(1, next+1).Draw(rt, "num")
				r.Release(num)
				delete(live, num)
			},
			"collect": func(rt *rapid.T) {
				want := map[string]bool{}
				clear(dirs[:])
				for _, names := range live {
					for _, n := range names {
						dirs[n] = known[n]
						want["manifest "+contents[n]], want[contents[n]], want["shared"] = true, true, true
					}
				}
				if r.collect(); r.has() != len(want) {
					rt.Fatalf("%d blobs are there, want %d", r.has(), len(want))
				}
			},
		})
		for _, num := range r.Jobs() {
			r.Release(num)
		}
		r.collect()
	})
}

// TestUsersArePlacesOfTheirOwn: a job's files are looked for in its user's part only, and pinned there.
func TestUsersArePlacesOfTheirOwn(t *testing.T) {
	r := newRig(t)
	a, b := r.put("ann", "same"), r.put("bob", "same")
	r.Keep(1, r.resolved("ann", file("x", a)))
	r.collect()
	if got := r.files.Missing(store.OwnOf("bob"), b.Hash); !slices.Equal(got, []files.Hash{b.Hash}) {
		t.Error("another user's blob stays for ann's job")
	}
	if got := r.files.Missing(store.OwnOf("ann"), a.Hash); len(got) != 0 {
		t.Error("her own went")
	}
}
