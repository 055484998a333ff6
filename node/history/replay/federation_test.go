package replay_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/replica"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// federation is three sites that order commands, each in a bundle of its own; the broker of one of them keeps the
// history, and all sign what it has at the checkpoints.
type federation struct {
	t       testing.TB
	dir     string
	keeper  *history.Keeper
	replica *replica.Replica
	id      [16]byte
	elapsed int64
	seq     map[string]uint64
	jobs    uint64
	runMs   int64           // of each task
	stepMs  int64           // of log time between two entries
	silent  map[string]bool // those who sign nothing
	keyName map[string]string
	entries [][]byte // all, as they were ordered
	points  []coord.Checkpoint
}

var siteNames = []string{"site-1", "site-2", "site-3"}

// keyOf returns the key of a name.
func keyOf(name string) identity.Key {
	var seed [32]byte
	copy(seed[:], name)
	return identity.FromSeed(seed)
}

// newFederation founds one, and has all sites register. keep is of history.Config.MaxBytes.
func newFederation(t testing.TB, keep int64) *federation { return foundedAs(t, [16]byte{7}, keep) }

// foundedAs founds one of that name.
func foundedAs(t testing.TB, id [16]byte, keep int64) *federation {
	t.Helper()
	f := &federation{
		t: t, dir: filepath.Join(t.TempDir(), history.Folder), id: id, seq: map[string]uint64{},
		runMs: 700, stepMs: 1000, silent: map[string]bool{}, keyName: map[string]string{},
	}
	f.open(keep)
	params := command.DefaultParams()
	params.RetainMs, params.RetainJobs = 60_000, 100
	f.order(command.Command{ID: command.ID{Site: "site-1"}, Body: &command.Genesis{
		Federation: f.id, Seed: 42, Params: params, Founder: signature.Key(keyOf("site-1").Public()),
	}})
	f.register("site-1")
	for _, site := range siteNames[1:] {
		f.admit(site)
		f.register(site)
	}
	return f
}

// open starts the broker that keeps the history.
func (f *federation) open(keep int64) {
	f.t.Helper()
	k, err := history.Open(history.Config{
		Dir: f.dir, MaxBytes: keep, Site: "site-1", Version: "test", Logger: zerolog.New(zerolog.NewTestWriter(f.t)),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.keeper, f.replica = k, replica.NewReplica()
	f.replica.KeepCheckpoints()
	f.replica.KeepHistory(k)
	f.t.Cleanup(func() { _ = k.Close() })
}

// rejoin ends the broker and has another one join by a snapshot: what it keeps begins with the next checkpoint.
func (f *federation) rejoin() {
	f.t.Helper()
	f.close()
	s, err := f.replica.Snapshot()
	if err != nil {
		f.t.Fatal(err)
	}
	var b bytes.Buffer
	if err = s.Write(&b); err != nil {
		f.t.Fatal(err)
	}
	f.dir = filepath.Join(f.t.TempDir(), history.Folder)
	f.open(64 << 20)
	if err = f.replica.Restore(&b); err != nil {
		f.t.Fatal(err)
	}
}

// sign returns what signs for a site now.
func (f *federation) sign(site string) command.Signer {
	name := site
	if other, ok := f.keyName[site]; ok {
		name = other
	}
	return keyOf(name).Sign
}

// entry encodes commands, each in its own bundle, some milliseconds after the last one.
func (f *federation) entry(ms int64, cmds ...command.Command) []byte {
	f.elapsed += ms
	b := command.Batch{Term: 1, Elapsed: f.elapsed, Commands: cmds}
	for _, c := range cmds {
		b.Bundles = append(b.Bundles, command.SignBundle(f.id, c.ID.Site, 1, command.Append(nil, c), f.sign(c.ID.Site)))
	}
	return b.Append(nil)
}

// apply has the broker apply an entry, and the sites sign what comes out.
func (f *federation) apply(entry []byte) []command.Result {
	f.t.Helper()
	f.entries = append(f.entries, entry)
	results, err := f.replica.Apply(entry)
	if err != nil {
		f.t.Fatal(err)
	}
	f.speak()
	return results
}

// speak has all sites sign the newest checkpoint, if it is of this entry.
func (f *federation) speak() {
	points := f.replica.Checkpoints()
	if n := len(points); n == 0 || points[n-1].Entry != f.replica.Index() {
		return
	}
	p := points[len(points)-1]
	p.Hashed = true
	_, p.Hash = f.replica.Hash()
	f.points = append(f.points, p)
	for _, site := range siteNames {
		if !f.silent[site] {
			f.say(site, p)
		}
	}
}

// say has a site sign a checkpoint, and the keeper hear it.
func (f *federation) say(site string, p coord.Checkpoint) {
	s := compare.Statement{Site: site, Checkpoint: p, Format: fsm.HashFormat}
	s.Sign(f.group(), f.sign(site))
	f.keeper.Statements(f.group(), []compare.Statement{s})
}

func (f *federation) group() compare.Group { return compare.Group{Federation: f.id, Lineage: f.id} }

// order has commands ordered in the next entry, each of which must succeed.
func (f *federation) order(cmds ...command.Command) []command.Result {
	f.t.Helper()
	results := f.apply(f.entry(f.stepMs, cmds...))
	for i, r := range results {
		if r.Code != command.OK {
			f.t.Fatalf("%T of %s: %v", cmds[i].Body, cmds[i].ID.Site, r.Code)
		}
	}
	return results
}

// cmd returns a site's next command.
func (f *federation) cmd(site string, body command.Body) command.Command {
	f.seq[site]++
	_, incarnation := f.replica.SiteState(site)
	return command.Command{
		ID: command.ID{Site: site, Incarnation: incarnation, Seq: f.seq[site]}, Ack: f.seq[site] - 1, Body: body,
	}
}

func (f *federation) register(site string) {
	f.t.Helper()
	_, after := f.replica.SiteState(site)
	f.order(command.Command{ID: command.ID{Site: site}, Body: &command.Register{
		Node: keyOf(site).Public().Node(), Boot: [16]byte{byte(f.replica.Index())}, HTTP: "h:1", Peer: "h:2",
		MaxVersion: fsm.Version, After: after,
	}})
	f.seq[site] = 0
	f.order(f.cmd(site, &command.Offer{Version: 1, Machines: []command.Machine{
		{Name: "m1", Resources: command.Resources{MilliCPU: 64_000, MemMiB: 1 << 20}},
	}}))
}

// admit invites a site, which comes.
func (f *federation) admit(site string) {
	f.t.Helper()
	invitation := keyOf("invitation of " + site)
	f.order(f.cmd("site-1", &command.Invite{Key: signature.Key(invitation.Public()), Site: site, ForMs: 3_600_000}))
	c := &command.Admit{
		Invitation: signature.Key(invitation.Public()), Site: site, Key: signature.Key(keyOf(site).Public()),
	}
	signed := c.Signed(f.id)
	c.ByInvitation = signature.Signature(invitation.Sign(command.SignedAdmission, signed...))
	c.ByKey = signature.Signature(keyOf(site).Sign(command.SignedAdmission, signed...))
	f.order(f.cmd("site-1", c))
}

// rekey replaces a site's key.
func (f *federation) rekey(site, name string) {
	f.t.Helper()
	next := keyOf(name)
	c := &command.Rekey{Site: site, Key: signature.Key(next.Public())}
	c.By = signature.Signature(f.sign(site)(command.SignedKey, c.Signed(f.id)...))
	c.ByNew = signature.Signature(next.Sign(command.SignedKey, c.Signed(f.id)...))
	f.order(f.cmd("site-1", c))
	f.keyName[site] = name
}

// job has a site submit one and the site that gets it run it.
func (f *federation) job(site string) {
	f.t.Helper()
	f.jobs++
	f.order(f.cmd(site, &command.Submit{Jobs: []command.JobSpec{{
		Num: f.jobs, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000, MemMiB: 64},
		Payload: fmt.Appendf(nil, `{"command":["sh","-c","echo %d; sleep 1"],"env":{"A":"B"}}`, f.jobs),
	}}}))
	f.finish()
}

// finish has every site report what it was assigned.
func (f *federation) finish() {
	f.t.Helper()
	for _, site := range siteNames {
		var list []fsm.Assignment
		f.replica.View(func(s *fsm.State) { list = s.Assignments(site) })
		for _, a := range list {
			f.order(f.cmd(site, &command.Complete{Attempts: []command.Ended{{
				AttemptRef: a.AttemptRef, Outcome: command.Succeeded, Ran: true, DelayMs: 5, RunMs: f.runMs,
			}}}))
		}
	}
}

// idle lets seconds pass, an empty entry each.
func (f *federation) idle(seconds int) {
	f.t.Helper()
	for range seconds {
		f.order()
	}
}

// close ends the broker.
func (f *federation) close() {
	f.t.Helper()
	if err := f.keeper.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// source opens what is kept, or a file.
func (f *federation) source(path string) *history.Source {
	f.t.Helper()
	src, err := history.OpenSource(path)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = src.Close() })
	return src
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
