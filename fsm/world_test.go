package fsm

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// tb is what both testing and rapid offer.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world drives a state with commands as brokers would: it keeps each site's sequence numbers and offer versions.
type world struct {
	t     tb
	s     *State
	term  uint64
	base  int64 // log time at the term's start
	seq   map[string]uint64
	inc   map[string]uint64
	offer map[string]uint64
	num   map[string]uint64
	boots byte
	keys  map[string]ed25519.PrivateKey // of a federation with a roster, by site; nil: it has none
}

func params() command.Params {
	p := command.DefaultParams()
	p.FixedOrder, p.PreferOwn, p.ReserveAfterMs = true, false, 0
	return p
}

func newWorld(t tb, p command.Params, sites ...string) *world {
	w := &world{
		t: t, s: New(), term: 1,
		seq: map[string]uint64{}, inc: map[string]uint64{}, offer: map[string]uint64{}, num: map[string]uint64{},
	}
	w.apply(command.Command{
		ID: command.ID{Site: "genesis"}, Body: &command.Genesis{Federation: [16]byte{7}, Seed: 42, Params: p},
	})
	for _, x := range sites {
		w.register(x)
	}
	return w
}

// at sets log time: the next entries carry it.
func (w *world) at(ms int64) { w.base = ms }

// apply applies one entry, and those that continue what it leaves.
func (w *world) apply(cmds ...command.Command) []command.Result {
	w.t.Helper()
	res, err := w.s.Apply(w.batch(cmds...))
	if err != nil {
		w.t.Fatal(err)
	}
	for w.s.unfinished() {
		if _, err := w.s.Apply(&command.Batch{Term: w.term, Elapsed: w.base}); err != nil {
			w.t.Fatal(err)
		}
	}
	return res
}

// cmd returns the site's next command.
func (w *world) cmd(site string, b command.Body) command.Command {
	w.seq[site]++
	return command.Command{
		ID: command.ID{Site: site, Incarnation: w.inc[site], Seq: w.seq[site]}, Ack: w.seq[site] - 1, Body: b,
	}
}

// do runs a site's command in its own entry.
func (w *world) do(site string, b command.Body) command.Result {
	w.t.Helper()
	return w.apply(w.cmd(site, b))[0]
}

// must is do for a command that has to succeed.
func (w *world) must(site string, b command.Body) command.Result {
	w.t.Helper()
	r := w.do(site, b)
	if r.Code != command.OK {
		w.t.Fatalf("%T of %s: %v", b, site, r.Code)
	}
	return r
}

func (w *world) registration(site string, held, lost []command.AttemptRef) command.Command {
	w.boots++
	id := nodeOf(site)
	if w.keys != nil {
		id = w.public(site).Node()
	}
	_, after := w.s.SiteState(site)
	return command.Command{ID: command.ID{Site: site}, Body: &command.Register{
		Node: id, Boot: [16]byte{w.boots}, HTTP: site + ":7700", Peer: site + ":7701", MaxVersion: Version, Held: held, Lost: lost,
		After: after,
	}}
}

func nodeOf(site string) (id [16]byte) {
	copy(id[:], site)
	return id
}

func (w *world) register(site string) command.Result {
	w.t.Helper()
	r := w.apply(w.registration(site, nil, nil))[0]
	if r.Code != command.OK {
		w.t.Fatalf("register %s: %v", site, r.Code)
	}
	w.inc[site], w.seq[site], w.offer[site] = r.Incarnation, 0, 0
	return r
}

// offering returns the site's next offer: machines named by the site, with the given numbers of cores.
func (w *world) offering(site string, cores ...int64) *command.Offer {
	w.offer[site]++
	o := &command.Offer{Version: w.offer[site]}
	for i, c := range cores {
		o.Machines = append(o.Machines, command.Machine{
			Name: fmt.Sprintf("m%d", i), Resources: command.Resources{MilliCPU: c * 1000, MemMiB: 1 << 20},
		})
		o.Capacity.MilliCPU += c * 1000
	}
	slices.SortFunc(o.Machines, func(a, b command.Machine) int { return strings.Compare(a.Name, b.Name) })
	return o
}

// job returns the site's next job of 1-core tasks.
func (w *world) job(site string, count uint32) command.JobSpec {
	w.num[site]++
	return command.JobSpec{
		Num: w.num[site], Count: count, Need: command.Resources{MilliCPU: 1000}, MaxAttempts: 1,
		Payload: []byte("true"),
	}
}

func (w *world) submit(site string, jobs ...command.JobSpec) command.Result {
	w.t.Helper()
	return w.must(site, &command.Submit{Jobs: jobs})
}

// ended reports an assignment's end.
func ended(a Assignment, o command.Outcome, runMs int64) command.Ended {
	return command.Ended{AttemptRef: a.AttemptRef, Outcome: o, RunMs: runMs}
}

func (w *world) check() {
	w.t.Helper()
	if err := w.s.check(); err != nil {
		w.t.Fatal(err)
	}
}
