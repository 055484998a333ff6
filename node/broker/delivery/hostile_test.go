package delivery

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// forged has a site say that it has collected files of four bytes at these paths, which no honest one can.
func forged(paths ...string) func(*testing.T, *rig) {
	text := []byte("cloudshare files 1\n")
	for _, p := range paths {
		text = append(binary.AppendUvarint(text, uint64(len(p))), p...)
		text = append(text, "\x02\x04evil"...) // its content stands here
	}
	text = append(text, 0)
	return func(_ *testing.T, r *rig) {
		r.peer("x").hold(text)
		r.delivers("x", 1, 0, command.Output{
			Manifest: files.HashOf(text), Size: int64(len(text)), Bytes: int64(4 * len(paths)),
		})
	}
}

// crowd returns one path more than a list may have.
func crowd() (paths []string) {
	for i := range files.MaxEntries + 1 {
		paths = append(paths, fmt.Sprintf("out/%06d", i))
	}
	return paths
}

// TestHostileSites: whatever a site says it has collected, nothing is kept of what is not so, and the task runs again
// or has failed, as its job says.
func TestHostileSites(t *testing.T) {
	said := func(text []byte, sum int64) command.Output {
		return command.Output{Manifest: files.HashOf(text), Size: int64(len(text)), Bytes: sum}
	}
	secret := files.BlobOf([]byte(big("secret")))
	listing := func(t *testing.T, entries ...files.Entry) []byte {
		text, err := files.EncodeManifest(entries)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		play func(t *testing.T, r *rig)
		want command.Delivery
		why  string
	}{
		"a manifest that is none": {func(_ *testing.T, r *rig) {
			r.peer("x").hold([]byte("junk"))
			r.delivers("x", 1, 0, said([]byte("junk"), 4))
		}, command.DeliveryLost, "is none"},
		"another sum than it said": {func(_ *testing.T, r *rig) {
			d := r.left("x", 9, 0, "content")
			r.state.cancel(d.AttemptRef)
			d.Output.Bytes--
			r.delivers("x", 1, 0, d.Output)
		}, command.DeliveryLost, "lists 7"},
		"more than its job allows": {func(_ *testing.T, r *rig) {
			r.wanted[1] = Wanted{User: "ann", Outputs: jobspec.Outputs{Optional: []string{"*"}, MaxBytes: 5}}
			r.left("x", 1, 0, "content")
		}, command.DeliveryFailed, "allows 5"},
		"not what its job requires": {func(_ *testing.T, r *rig) {
			r.wanted[1] = Wanted{User: "ann", Outputs: jobspec.Outputs{Paths: []string{"out/*", "model/"}, MaxBytes: 50}}
			r.left("x", 1, 0, "content")
		}, command.DeliveryFailed, "no file model/"},
		"nothing, though its job requires some": {func(_ *testing.T, r *rig) {
			r.delivers("x", 1, 0, command.Output{})
		}, command.DeliveryFailed, "collected nothing"},
		"nothing, and its job requires none": {func(_ *testing.T, r *rig) {
			r.wanted[1] = Wanted{User: "ann", Outputs: jobspec.Outputs{Optional: []string{"out/*"}, MaxBytes: 50}}
			r.delivers("x", 1, 0, command.Output{})
		}, command.DeliveryOK, ""},
		"a file that its job does not name": {
			forged(".git/hooks/post-checkout", "out/000"), command.DeliveryLost,
			`lists ".git/hooks/post-checkout", which no output of its job names`,
		},
		"a folder's file where its job names files": {forged("out/deep/x"), command.DeliveryLost, `lists "out/deep/x"`},
		"a path that leads out":                     {forged("../etc/x"), command.DeliveryLost, "list of them is none"},
		"a path that leads out of its folder":       {forged("out/../../x"), command.DeliveryLost, "list of them is none"},
		"an absolute path":                          {forged("/etc/x"), command.DeliveryLost, "list of them is none"},
		"one path twice":                            {forged("out/x", "out/x"), command.DeliveryLost, "list of them is none"},
		"a path below a file":                       {forged("out/x", "out/x/y"), command.DeliveryLost, "list of them is none"},
		"a line feed in a path":                     {forged("out/x\ny"), command.DeliveryLost, "list of them is none"},
		"100,001 files":                             {forged(crowd()...), command.DeliveryLost, "100000 are the most"},
		"a manifest of other bytes": {func(_ *testing.T, r *rig) {
			d := r.left("x", 1, 0, "content")
			r.peer("x").blobs[d.Output.Manifest] = make([]byte, d.Output.Size)
		}, command.DeliveryLost, "something else"},
		"a file of other bytes": {func(_ *testing.T, r *rig) {
			r.left("x", 1, 0, big("right"))
			r.peer("x").blobs[files.HashOf([]byte(big("right")))] = []byte(big("wrong"))
		}, command.DeliveryLost, "something else"},
		"a large file of other bytes": {func(_ *testing.T, r *rig) {
			r.left("x", 1, 0, huge("right"))
			r.peer("x").blobs[files.HashOf([]byte(huge("right")))] = []byte(huge("wrong"))
		}, command.DeliveryLost, "something else"},
		"a file that it does not have": {func(_ *testing.T, r *rig) {
			r.left("x", 1, 0, big("right"))
			delete(r.peer("x").blobs, files.HashOf([]byte(big("right"))))
		}, command.DeliveryLost, "lost at x"},
		"what it has removed": {func(_ *testing.T, r *rig) {
			d := r.left("x", 1, 0, "content")
			r.peer("x").refuse[d.Output.Manifest] = transfer.Gone
		}, command.DeliveryLost, "lost at x"},
		"another size of what is here": {func(t *testing.T, r *rig) {
			r.peer("y").hold([]byte(big("secret")))
			r.left("y", 2, 0, big("secret"))
			r.start()
			r.next()
			r.stop()
			text := listing(t, files.Entry{Path: "out/x", Size: secret.Size + 1, Hash: secret.Hash})
			r.peer("x").hold(text)
			r.delivers("x", 1, 0, said(text, secret.Size+1))
		}, command.DeliveryLost, "it has"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				c.play(t, r)
				r.start()
				got := r.next()
				if got.Outcome != c.want {
					t.Errorf("told %+v, want outcome %d", got, c.want)
				}
				outcome(t, got, r.delivering(got), c.want, c.why)
				synctest.Wait()
				if _, _, found := r.book.List(1, 0, 1); found {
					t.Error("something of it is kept")
				}
				if s := r.loop.Stats(); s.Waiting != 0 || len(r.told) > 0 {
					t.Errorf("left to do: %+v", s)
				}
			})
		})
	}
}

// TestHashesOpenNothing: a site that names a hash of what another user of this site has gets nothing of it into its
// own task's results.
func TestHashesOpenNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.wanted[2] = Wanted{User: "bob", Outputs: jobspec.Outputs{Optional: []string{"out/*"}, MaxBytes: 1 << 30}}
		mine := r.left("y", 1, 0, big("secret"))
		r.peer("x").refuse[files.HashOf([]byte(big("secret")))] = transfer.NotHere
		r.start()
		outcome(t, r.next(), mine, command.DeliveryOK, "")
		guess := r.left("x", 2, 0, big("secret"))
		outcome(t, r.next(), guess, command.DeliveryLost, "lost at x")
	})
}
