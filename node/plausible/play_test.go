package plausible

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// conduct is what a site of a play does; the zero value is honest.
type conduct struct {
	slow    float64 // its tasks take so many times as long
	claim   float64 // it reports so many times what they took
	decline bool    // it hands back all tasks of other sites
	late    bool    // it says that tasks began only as they end, and claims the time since their assignment
}

// play is a federation on a state machine of its own: three sites with four cores each, whose arrays come at random.
// It goes by seconds, of log time and of the watcher's clock.
type play struct {
	t      *testing.T
	rnd    *rand.Rand
	state  *fsm.State
	watch  *Watch
	events []fsm.Event
	nowMs  int64 // log time
	lostMs int64 // by which the watcher's clock is ahead
	sites  []string
	does   map[string]conduct
	seq    map[string]uint64
	inc    map[string]uint64
	num    map[string]uint64
	offers map[string]uint64
	length map[command.JobID]float64
	runs   []run
}

// run is an attempt that goes on; times are the site's own, not the log's.
type run struct {
	command.AttemptRef
	site                    string
	fromMs, delayMs, tookMs int64
	saidBegun               bool
}

func newPlay(t *testing.T, seed uint64, does map[string]conduct) *play {
	p := &play{
		t: t, rnd: rand.New(rand.NewPCG(seed, 7)), state: fsm.New(), watch: New(), sites: []string{"a", "b", "c"}, does: does,
		seq: map[string]uint64{}, inc: map[string]uint64{}, num: map[string]uint64{}, offers: map[string]uint64{},
		length: map[command.JobID]float64{},
	}
	p.state.Observe(&p.events)
	params := command.DefaultParams()
	params.PreferOwn = false // so that arrays are spread
	p.apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: [16]byte{1}, Seed: seed, Params: params,
	}})
	for _, x := range p.sites {
		r := p.apply(command.Command{ID: command.ID{Site: x}, Body: &command.Register{
			Node: [16]byte{x[0]}, Boot: [16]byte{x[0]}, HTTP: x + ":1", Peer: x + ":2", MaxVersion: fsm.Version,
		}})
		p.inc[x] = r[0].Incarnation
		p.offer(x)
	}
	p.watch.Sample(p.state, p.clock())
	return p
}

// realMs goes on while log time stands still.
func (p *play) realMs() int64 { return p.nowMs + p.lostMs }

func (p *play) clock() time.Time { return time.UnixMilli(1_700_000_000_000 + p.realMs()) }

func (p *play) apply(cmds ...command.Command) []command.Result {
	p.t.Helper()
	res, err := p.state.Apply(&command.Batch{Term: 1, Elapsed: p.nowMs, Commands: cmds})
	if err != nil {
		p.t.Fatal(err)
	}
	taken := p.events
	p.events = nil
	for i := range taken {
		p.watch.Observe(&taken[i])
	}
	for i := range taken {
		if taken[i].Kind == fsm.EventTaskAssigned {
			p.begin(&taken[i])
		}
	}
	return res
}

func (p *play) do(site string, body command.Body) {
	p.t.Helper()
	p.seq[site]++
	r := p.apply(command.Command{
		ID: command.ID{Site: site, Incarnation: p.inc[site], Seq: p.seq[site]}, Ack: p.seq[site] - 1, Body: body,
	})
	if r[0].Code != command.OK {
		p.t.Fatalf("%T of %s: %s", body, site, r[0].Code)
	}
}

func (p *play) offer(site string) {
	p.offers[site]++
	p.do(site, &command.Offer{Version: p.offers[site], Machines: []command.Machine{
		{Name: "m", Resources: command.Resources{MilliCPU: 4000}},
	}})
}

// begin starts what was assigned, up to two seconds later.
func (p *play) begin(ev *fsm.Event) {
	took := p.length[ev.Job] * math.Exp(0.4*p.rnd.NormFloat64())
	if slow := p.does[ev.Site].slow; slow > 0 {
		took *= slow
	}
	p.runs = append(p.runs, run{
		AttemptRef: refOf(ev), site: ev.Site, fromMs: p.realMs(), delayMs: p.rnd.Int64N(2000), tookMs: int64(took),
	})
}

// step does what a second brings: jobs, starts, ends.
func (p *play) step() {
	p.nowMs += 1000
	p.apply()
	going := p.runs
	p.runs = nil
	for _, r := range going {
		if !p.goOn(&r) {
			p.runs = append(p.runs, r)
		}
	}
	for _, x := range p.sites[:2] {
		if p.rnd.IntN(90) == 0 {
			p.submit(x)
		}
		if p.nowMs%60_000 == 0 && p.does["c"].decline {
			p.offer("c")
		}
	}
	p.watch.Sample(p.state, p.clock())
}

func (p *play) submit(site string) {
	p.num[site]++
	p.length[command.JobID{Site: site, Num: p.num[site]}] = 5000 * math.Exp(2*p.rnd.Float64())
	p.do(site, &command.Submit{Jobs: []command.JobSpec{{
		Num: p.num[site], Count: uint32(6 + p.rnd.IntN(20)), MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000},
	}}})
}

// goOn says of a run what there is to say, and reports whether it is over.
func (p *play) goOn(r *run) bool {
	does := p.does[r.site]
	if does.decline && r.Job.Site != r.site {
		p.do(r.site, &command.Decline{Attempts: []command.AttemptRef{r.AttemptRef}, Reason: "no room"})
		return true
	}
	went := p.realMs() - r.fromMs
	over := went >= r.delayMs+r.tookMs
	if does.late && over {
		r.delayMs, r.tookMs = 0, went
	}
	if !r.saidBegun && went >= r.delayMs && (over || !does.late) {
		r.saidBegun = true
		began := command.StartedAttempt{AttemptRef: r.AttemptRef, DelayMs: r.delayMs}
		p.do(r.site, &command.Started{Attempts: []command.StartedAttempt{began}})
	}
	if !over {
		return false
	}
	ended := command.Ended{AttemptRef: r.AttemptRef, Ran: true, DelayMs: r.delayMs, RunMs: r.tookMs}
	if does.claim > 0 {
		ended.RunMs = int64(float64(r.tookMs) * does.claim)
	}
	p.do(r.site, &command.Complete{Attempts: []command.Ended{ended}})
	return true
}

func (p *play) site(name string) node.SitePlausibility {
	for _, s := range fresh(p.watch).Sites {
		if s.Site == name {
			return s
		}
	}
	p.t.Fatalf("nothing was seen of %s", name)
	return node.SitePlausibility{}
}

func (p *play) lines() (out string) {
	for _, s := range fresh(p.watch).Sites {
		out += fmt.Sprintf("%+v\n", s)
	}
	return out
}
