package command

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/sched"
)

var specimenID = ID{Site: "site-1", Incarnation: 3, Seq: 300}

func specimenRef(task uint32) AttemptRef {
	return AttemptRef{Job: JobID{Site: "b", Num: 7}, Task: task, Attempt: 2, Token: 1 << 40}
}

func specimenOffer() *Offer {
	return &Offer{
		Version: 9,
		Machines: []Machine{
			{Name: "m1", Resources: Resources{2000, 4096, 0}, Whole: Resources{4000, 4096, 0}},
			{Name: "m2", Resources: Resources{64_000, 0, 8}, Runs: RunsBoth},
		},
		Capacity: Resources{70_000, 8192, 8}, Home: Resources{1000, 512, 0},
	}
}

// specimenLabelled returns an offer with labels and slots.
func specimenLabelled() *Offer {
	o := specimenOffer()
	o.Machines[0].Labels, o.Machines[1].Slots = "arch=amd64,gpu.example/model=v100", 7
	o.Machines = append(o.Machines, Machine{Name: "m3", Labels: "zone="}, Machine{Name: "m4", Labels: "arch=amd64,gpu.example/model=v100"})
	return o
}

// specimens returns one command of every kind, by name, for goldens and fuzz seeds.
func specimens() map[string]Body {
	params := DefaultParams()
	params.Running = sched.Completed
	id := [16]byte{0: 1, 15: 0xff}
	return map[string]Body{
		"genesis": &Genesis{Federation: id, CreatedMs: 1_700_000_000_000, Seed: math.MaxUint64, Params: DefaultParams()},
		"register": &Register{
			Node: id, Boot: id, Known: [][16]byte{id, {7}}, HTTP: "127.0.0.1:7700", Peer: "127.0.0.1:7800",
			Gossip: "h:3", MaxVersion: 1, After: 300, Held: []AttemptRef{specimenRef(0)},
			Lost: []AttemptRef{specimenRef(1), specimenRef(2)},
		},
		"submit": &Submit{Settled: 4, Jobs: []JobSpec{
			{Num: 5, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: 1, Payload: []byte("{}")},
			{
				Num: 6, Count: MaxCount, Need: Resources{2000, 256, 1}, Image: true, TimeoutMs: 90_000,
				MaxAttempts: 3, OnLoss: Never,
				Priority: -5, Only: []string{"a", "b"}, Not: []string{"c"}, CreatedMs: 1_700_000_000_000,
				Payload: []byte{0, 255},
			},
		}},
		"offer":   specimenOffer(),
		"started": &Started{Attempts: []StartedAttempt{{specimenRef(0), 12}}},
		"complete": &Complete{Attempts: []Ended{{
			AttemptRef: specimenRef(0), Outcome: Failed, ExitCode: -1, Signal: 9, Ran: true, DelayMs: 5,
			RunMs: 1234, Detail: "killed",
		}}},
		"decline":  &Decline{Attempts: []AttemptRef{specimenRef(0)}, Reason: "busy", Offer: specimenOffer()},
		"cancel":   &Cancel{Job: JobID{Site: "site-1", Num: 5}, Task: -1},
		"cancelat": &Cancel{Job: JobID{Site: "site-1", Num: 5}, Task: 7, At: "site-2"}, "close": &Close{Why: ClosedDisk},
		"usage": &Usage{
			Batch: 2,
			Rows:  []UsageRow{{Job: 5, Task: 1, Need: Resources{MilliCPU: 1000}, AgoMs: 1, RunMs: 2, WaitMs: 3}},
		},
		"sitelost": &SiteLost{Site: "b", Incarnation: 2, Term: 8},
		"forget":   &Forget{Site: "b"}, "policy": &SetParams{Params: params},
		"suspect": &Suspect{Site: "b", Incarnation: 2, On: true}, "addresses": &Addresses{HTTP: "h:1", Peer: "h:2", Gossip: "h:3"},
		"leave": &Leave{}, "lead": &Lead{Term: 300},
		"bound": &Bound{Attempts: []BoundAttempt{{specimenRef(0), 90_000}}},
		"raise": &Raise{Version: 300}, "recover": &Recover{Epoch: 300, HoldMs: 90_000},
		"select": &Submit{Settled: 4, Jobs: []JobSpec{
			{Num: 5, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: 1, Payload: []byte("{}")},
			{Num: 6, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: 1, Selectors: []string{"!old", "gpu.example/model in (a100,v100)", "zone!=b"}},
		}},
		"labelled": specimenLabelled(),
		"founded":  &Genesis{Federation: id, Params: DefaultParams(), Founder: [32]byte{0: 3, 31: 4}},
		"invite":   &Invite{Key: [32]byte{0: 5, 31: 6}, Site: "lab-2", Elector: true, ForMs: 3_600_000},
		"revoke":   &Revoke{Key: [32]byte{0: 5, 31: 6}},
		"admit": &Admit{
			Invitation: [32]byte{0: 5, 31: 6}, Site: "lab-2", Key: [32]byte{0: 7, 31: 8},
			ByInvitation: [64]byte{0: 9, 63: 10}, ByKey: [64]byte{0: 11, 63: 12},
		},
		"rekey": &Rekey{
			Site: "lab-2", Generation: 300, Key: [32]byte{0: 7, 31: 8}, Recovery: [32]byte{0: 13, 31: 14}, ByRecovery: true,
			By: [64]byte{0: 15, 63: 16}, ByNew: [64]byte{0: 17, 63: 18},
		},
		"motion":    &Motion{What: MotionBan, Site: "lab-2"},
		"rebind":    &Motion{What: MotionRebind, Site: "lab-2", Key: [32]byte{0: 7, 31: 8}},
		"newpolicy": &Motion{What: MotionPolicy, Params: &params},
		"vote":      &Vote{Motion: 300, Yes: true},
		"gossipkey": &GossipKey{Term: 8, Generation: 2, Key: [32]byte{0: 19, 31: 20}},
		"renice":    &Renice{Jobs: []Nice{{Num: 300}, {Num: 7, Nice: MaxNice}}},
		"orphans": &Orphans{Attempts: []Ended{{
			AttemptRef: specimenRef(0), Outcome: Orphaned, Ran: true, DelayMs: 5, RunMs: 1234, Detail: "its supervisor died",
		}}},
		"ahead":    &Ahead{IdleMs: 256},
		"handback": &HandBack{Attempts: []AttemptRef{specimenRef(0), specimenRef(1)}, Reason: "a long task runs before it"},
		"release": &Release{Jobs: []JobGates{
			{Num: 4},
			{Num: 300, Runs: []GateRun{
				{From: 0, To: 200},
				{From: 200, To: MaxCount - 1, Attempt: AnyAttempt, Do: GateHold},
				{From: MaxCount - 1, To: MaxCount, Attempt: 2, Do: GateFail, Reason: "exit code 2 is final"},
			}},
			{Num: 301, Runs: []GateRun{{From: 3, To: 4, Do: GateCancel, Reason: "what it waits for has failed"}}},
		}},
		"prioritize": &Prioritize{Jobs: []Priority{{Num: 300, Priority: -MaxPriority}, {Num: 7, Priority: 5}}},
		"gated": &Submit{Jobs: []JobSpec{
			{Num: 5, Count: 9, Need: Resources{MilliCPU: 1000}, MaxAttempts: 3, Gated: true},
			{
				Num: 6, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: 1,
				Gated: true, Delivers: true, Image: true,
			},
		}},
		"nice": &Submit{Jobs: []JobSpec{
			{Num: 5, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: 1, Priority: 3, Nice: 40},
		}},
		"alike": &Submit{Jobs: []JobSpec{
			specimenAlike(5, 1, "{}"), specimenAlike(6, 1, "{}"), specimenAlike(7, 1, "{1}"), specimenAlike(8, 2, "{1}"),
		}},
		"collected": &Complete{Attempts: []Ended{
			{
				AttemptRef: specimenRef(0), Ran: true, RunMs: 1234,
				Output: Output{Manifest: [32]byte{0: 21, 31: 22}, Size: 300, Bytes: MaxOutputBytes},
			},
			{AttemptRef: specimenRef(1), Ran: true, RunMs: 1234, Measured: Measured{
				PeakBytes: 5 << 30, UserMs: 1000, SystemMs: 30, InBytes: 7, OutBytes: 8, Source: MeasuredCgroup,
			}},
			{
				AttemptRef: specimenRef(2), Output: Output{Manifest: [32]byte{1}, Size: 1},
				Measured: Measured{Source: MeasuredKubernetes},
			},
		}},
		"delivers": &Submit{Jobs: []JobSpec{
			{Num: 5, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: 1, Delivers: true},
			{Num: 6, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: 1, Delivers: true, Image: true},
		}},
		"deliver": &Deliver{Attempts: []Delivered{
			{AttemptRef: specimenRef(0)},
			{AttemptRef: specimenRef(1), Outcome: DeliveryLost, Detail: "b is gone"},
			{AttemptRef: specimenRef(2), Outcome: DeliveryFailed, Detail: "no file matches out/*.csv"},
		}},
		"unopened": &Decline{Attempts: []AttemptRef{specimenRef(0)}, Reason: "no key", Unopened: true},
		"relabel":  &Decline{Attempts: []AttemptRef{specimenRef(0)}, Reason: "busy", Offer: specimenLabelled()},
	}
}

func specimenBatch() *Batch {
	b := &Batch{Term: 8, Elapsed: 1_000_000}
	bodies := specimens()
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		b.Commands = append(b.Commands, Command{ID: specimenID, Ack: 299, Body: bodies[name]})
	}
	return b
}

// bundlesOf returns a batch's commands in two bundles with what could be signatures.
func bundlesOf(b *Batch) []Bundle {
	n := len(b.Commands)
	first := Bundle{Site: "site-1", Commands: 3, Signature: [64]byte{1, 63: 2}}
	second := Bundle{Site: "site-2", Commands: n - 3, Signature: [64]byte{3, 63: 4}}
	for i, c := range b.Commands {
		if i < 3 {
			first.Signed = Append(first.Signed, c)
		} else {
			second.Signed = Append(second.Signed, c)
		}
	}
	return []Bundle{first, second}
}

// TestCodecGoldens guards the stored form: bytes in testdata/codec never change for a released format;
// `-rewrite` is for new kinds only.
func TestCodecGoldens(t *testing.T) {
	datadriven.RunTest(t, "testdata/codec", func(t *testing.T, d *datadriven.TestData) string {
		body, ok := specimens()[d.Cmd]
		if !ok {
			t.Fatalf("%s: no specimen %q", d.Pos, d.Cmd)
		}
		c := Command{ID: specimenID, Ack: 299, Body: body}
		if d.HasArg("batch") {
			return hex.EncodeToString((&Batch{Term: 8, Elapsed: 300, Commands: []Command{c}}).Append(nil)) + "\n"
		}
		return hex.EncodeToString(Append(nil, c)) + "\n"
	})
}

func TestBatchRoundTripOfEveryKind(t *testing.T) {
	want, kinds := specimenBatch(), map[Kind]bool{}
	want.Bundles = bundlesOf(want)
	for _, c := range want.Commands {
		kinds[c.Body.Kind()] = true
	}
	if len(kinds) != int(LastKind) {
		t.Fatalf("specimens of %d kinds, there are %d", len(kinds), LastKind)
	}
	data := want.Append([]byte("before"))
	got, err := DecodeBatch(data[len("before"):])
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	var parts [][]byte
	for _, c := range want.Commands {
		parts = append(parts, Append(nil, c))
	}
	if !bytes.Equal(AppendBatch([]byte("before"), want.Term, want.Elapsed, parts, want.Bundles), data) {
		t.Fatal("AppendBatch of encoded commands differs from Append")
	}
}

func TestDecodeCommandReturnsTheRest(t *testing.T) {
	first := Command{ID: specimenID, Ack: 1, Body: &Forget{Site: "x"}}
	second := Command{ID: specimenID, Ack: 2, Body: &Forget{Site: "y"}}
	got, rest, err := Decode(Append(Append(nil, first), second))
	if err != nil || !reflect.DeepEqual(got, first) {
		t.Fatalf("first = %+v, %v", got, err)
	}
	got, rest, err = Decode(rest)
	if err != nil || !reflect.DeepEqual(got, second) || len(rest) != 0 {
		t.Fatalf("second = %+v, %d left, %v", got, len(rest), err)
	}
}

func TestNegativeElapsedIsWrittenAsZero(t *testing.T) {
	got, err := DecodeBatch((&Batch{Term: 1, Elapsed: -5}).Append(nil))
	if err != nil || got.Elapsed != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// number draws mostly valid values, and some at the bounds and beyond them.
func number(t *rapid.T, low, high int64, what string) int64 {
	edges := []int64{low, high, low, high, low, high, low - 1, high + 1, math.MinInt64, math.MaxInt64}
	return rapid.OneOf(rapid.Int64Range(low, high), rapid.Int64Range(low, high), rapid.SampledFrom(edges)).Draw(t, what)
}

func drawSite(t *rapid.T) string {
	return rapid.OneOf(rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,5}[a-z0-9])?`), rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`),
		rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "-", ""})).Draw(t, "site")
}

func drawSites(t *rapid.T) []string {
	list := rapid.SliceOfN(rapid.Custom(drawSite), 0, 4).Draw(t, "sites")
	if rapid.IntRange(0, 9).Draw(t, "leave unsorted") > 0 {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return list
}

func drawResources(t *rapid.T) Resources {
	return Resources{number(t, 0, MaxMilliCPU, "cpu"), number(t, 0, MaxMemMiB, "mem"), number(t, 0, MaxGPU, "gpu")}
}

func drawRef(t *rapid.T) AttemptRef {
	return AttemptRef{
		Job:  JobID{Site: drawSite(t), Num: rapid.Uint64().Draw(t, "num")},
		Task: uint32(number(t, 0, MaxCount-1, "task")), Attempt: rapid.Uint32().Draw(t, "attempt"), Token: rapid.Uint64().Draw(t, "token"),
	}
}

func drawMachine(t *rapid.T) Machine {
	name := rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "name")
	return Machine{
		Name: name, Resources: Resources{MilliCPU: number(t, 0, 4000, "cpu"), MemMiB: rapid.Int64Range(0, 9).Draw(t, "mem")},
		Whole: Resources{MilliCPU: number(t, 0, 4000, "whole cpu")},
		Runs:  Runs(number(t, 0, int64(RunsBoth), "runs")),
		Slots: rapid.SampledFrom([]int64{0, 0, 0, 0, 1, MaxSlots, MaxSlots + 1, -1}).Draw(t, "slots"), Labels: drawLabels(t),
	}
}

// drawLabels draws mostly valid labels, and none in half of all cases.
func drawLabels(t *rapid.T) Labels {
	return Labels(rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"", "a=1", "a=1,b=", "b.c/D_e=F-g"}),
		rapid.SampledFrom([]string{"a=1", "a=2,z=", "a", "b=1,a=1", "a=1,a=2", "a=1,", ",", "=", "A.b/c=1", "a=-"})).Draw(t, "labels"))
}

// drawSelectors draws mostly valid selectors, and some invalid ones.
func drawSelectors(t *rapid.T) []string {
	list := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{"a", "!a", "a=1", "a!=1", "a in (1,2)", "a notin (1,2)", "b.c/d="}),
		rapid.SampledFrom([]string{"a", "a=1", "z", "a==1", "a in (2,1)", "a in (1)", " a", "a=-", "", "!", "A/b"})), 0, 3).Draw(t, "selectors")
	if rapid.IntRange(0, 9).Draw(t, "leave unsorted") > 0 {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	if rapid.Bool().Draw(t, "none") || len(list) == 0 {
		return nil
	}
	return list
}

func drawOffer(t *rapid.T) *Offer {
	machines := rapid.SliceOfN(rapid.Custom(drawMachine), 0, 4).Draw(t, "machines")
	slices.SortFunc(machines, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	return &Offer{
		Version: rapid.Uint64().Draw(t, "version"), Machines: machines, Capacity: drawResources(t),
		Home: drawResources(t),
	}
}

func drawJob(t *rapid.T) JobSpec {
	need := drawResources(t)
	need.MilliCPU = max(need.MilliCPU, 1)
	return JobSpec{
		Num: rapid.Uint64().Draw(t, "num"), Count: uint32(number(t, 1, MaxCount, "count")), Need: need,
		Image: rapid.Bool().Draw(t, "image"), Delivers: rapid.Bool().Draw(t, "delivers"),
		Gated:     rapid.Bool().Draw(t, "gated"),
		TimeoutMs: number(t, 0, MaxTimeoutMs, "timeout"), MaxAttempts: uint32(number(t, 1, MaxAttempts, "attempts")),
		OnLoss: OnLoss(number(t, 0, int64(Never), "on_loss")), Priority: int32(number(t, -MaxPriority, MaxPriority, "priority")),
		Nice: uint32(number(t, 0, MaxNice, "nice")),
		Only: drawSites(t), Not: drawSites(t), Selectors: drawSelectors(t), CreatedMs: number(t, 0, MaxUnixMs, "created"),
		Payload: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"),
	}
}

func drawRelease(t *rapid.T) *Release {
	b, num := &Release{}, uint64(0)
	for range rapid.IntRange(0, 3).Draw(t, "jobs") {
		num += uint64(number(t, 1, 1<<40, "gap"))
		g := JobGates{Num: num}
		for range rapid.IntRange(0, 3).Draw(t, "runs") {
			from := uint32(0)
			if n := len(g.Runs); n > 0 {
				from = g.Runs[n-1].To
			}
			v := GateRun{Attempt: rapid.Uint32().Draw(t, "attempt"), Do: GateAction(number(t, 0, int64(GateCancel), "action"))}
			v.From = from + uint32(number(t, 0, 1000, "from"))
			v.To = v.From + uint32(number(t, 1, 1000, "to"))
			if v.Do >= GateFail {
				v.Reason = rapid.StringMatching(`[a-z ]{0,20}`).Draw(t, "reason")
			}
			g.Runs = append(g.Runs, v)
		}
		b.Jobs = append(b.Jobs, g)
	}
	return b
}

func drawParams(t *rapid.T) Params {
	return Params{
		Policy:    rapid.SampledFrom(append(sched.Names(), "LOTTERY", strings.Repeat("x", 99))).Draw(t, "policy"),
		Running:   sched.Mode(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 200}).Draw(t, "mode")),
		PreferOwn: rapid.Bool().Draw(t, "own"), ClaimedHome: rapid.Bool().Draw(t, "claimed"),
		FixedOrder:     rapid.Bool().Draw(t, "fixed"),
		ReserveAfterMs: number(t, 0, MaxTimeoutMs, "reserve"), RetainMs: number(t, 0, MaxTimeoutMs, "retain"),
		RetainJobs:  number(t, 0, MaxRetainJobs, "jobs"),
		DepartureMs: number(t, 0, MaxTimeoutMs, "departure"), RateCPU: number(t, 0, MaxRate, "cpu"), RateMem: number(t, 0, MaxRate, "mem"),
		RateGPU: number(t, 0, MaxRate, "gpu"), QuantumMs: number(t, 1, MaxQuantumMs, "quantum"),
		LeaseMs: number(t, 0, MaxTimeoutMs, "lease"), MarginMs: number(t, 0, MaxTimeoutMs, "margin"),
	}
}

// specimenAlike returns a job that differs from others only as much as is said.
func specimenAlike(num uint64, attempts uint32, payload string) JobSpec {
	return JobSpec{
		Num: num, Count: 1, Need: Resources{MilliCPU: 1000}, MaxAttempts: attempts, Only: []string{"b"}, CreatedMs: 1,
		Payload: []byte(payload),
	}
}

// drawJobs draws jobs of which some share their terms or their payload with the one before them.
func drawJobs(t *rapid.T) []JobSpec {
	jobs := rapid.SliceOfN(rapid.Custom(drawJob), 0, 4).Draw(t, "jobs")
	for i := 1; i < len(jobs); i++ {
		j, before := &jobs[i], &jobs[i-1]
		if rapid.Bool().Draw(t, "terms of the one before") {
			j.takeTerms(before)
		}
		if rapid.Bool().Draw(t, "payload of the one before") {
			j.Payload = before.Payload
		}
	}
	return jobs
}

func drawEnded(t *rapid.T) Ended {
	return Ended{
		AttemptRef: drawRef(t), Outcome: Outcome(number(t, 0, int64(Lost), "outcome")),
		ExitCode: rapid.Int32().Draw(t, "exit"), Signal: rapid.Int32().Draw(t, "signal"),
		Ran:     rapid.Bool().Draw(t, "ran"),
		DelayMs: number(t, 0, MaxTimeoutMs, "delay"), RunMs: number(t, 0, MaxTimeoutMs, "run"),
		Detail: rapid.StringN(0, -1, MaxDetail+1).Draw(t, "detail"),
		Output: drawOutput(t), Measured: drawMeasured(t),
	}
}

// drawOutput draws an output, in half of all cases that of nothing, and drawMeasured what an attempt used.
func drawOutput(t *rapid.T) Output {
	o := Output{
		Manifest: [32]byte{31: rapid.ByteRange(0, 9).Draw(t, "manifest")},
		Size:     number(t, 1, MaxManifest, "size"), Bytes: number(t, 0, MaxOutputBytes, "bytes"),
	}
	if rapid.Bool().Draw(t, "nothing") {
		return Output{}
	}
	return o
}

func drawMeasured(t *rapid.T) Measured {
	if rapid.Bool().Draw(t, "unmeasured") {
		return Measured{}
	}
	return Measured{
		PeakBytes: number(t, 0, MaxPeakBytes, "peak"),
		UserMs:    number(t, 0, MaxProcessorMs, "user"), SystemMs: number(t, 0, MaxProcessorMs, "system"),
		InBytes: number(t, 0, MaxTransfer, "in"), OutBytes: number(t, 0, MaxTransfer, "out"),
		Source: MeasureSource(rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 200}).Draw(t, "source")),
	}
}

func drawBody(t *rapid.T) Body {
	refs := func(what string) []AttemptRef { return rapid.SliceOfN(rapid.Custom(drawRef), 0, 3).Draw(t, what) }
	text := func(what string, most int) string { return rapid.StringN(0, -1, most+1).Draw(t, what) }
	switch kind := Kind(rapid.IntRange(int(KindGenesis), int(LastKind)).Draw(t, "kind")); kind {
	case KindGenesis:
		return &Genesis{
			Federation: [16]byte{rapid.Byte().Draw(t, "id")}, CreatedMs: number(t, 0, MaxUnixMs, "created"),
			Seed: rapid.Uint64().Draw(t, "seed"), Params: drawParams(t),
		}
	case KindRegister:
		return &Register{
			Node:  [16]byte{rapid.Byte().Draw(t, "node")},
			Known: make([][16]byte, rapid.IntRange(0, MaxKnown+1).Draw(t, "known")),
			HTTP:  text("http", MaxAddress), Peer: text("peer", MaxAddress), Gossip: text("gossip", MaxAddress),
			MaxVersion: rapid.Uint32().Draw(t, "v"), After: rapid.Uint64().Draw(t, "after"), Held: refs("held"), Lost: refs("lost"),
		}
	case KindSubmit:
		return &Submit{Settled: rapid.Uint64().Draw(t, "settled"), Jobs: drawJobs(t)}
	case KindOffer:
		return drawOffer(t)
	case KindStarted:
		return &Started{Attempts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) StartedAttempt {
			return StartedAttempt{drawRef(t), number(t, 0, MaxTimeoutMs, "delay")}
		}), 0, 3).Draw(t, "attempts")}
	case KindComplete:
		return &Complete{Attempts: rapid.SliceOfN(rapid.Custom(drawEnded), 0, 3).Draw(t, "attempts")}
	case KindDecline:
		d := &Decline{Attempts: refs("attempts"), Reason: text("reason", MaxDetail), Unopened: rapid.Bool().Draw(t, "unopened")}
		if rapid.Bool().Draw(t, "offer") {
			d.Offer = drawOffer(t)
		}
		return d
	case KindCancel:
		return &Cancel{
			Job: drawRef(t).Job, Task: number(t, -1, MaxCount-1, "task"),
			At: rapid.SampledFrom([]string{"", "a", "site-2", "No Site"}).Draw(t, "at"),
		}
	case KindUsage:
		return &Usage{Batch: rapid.Uint64().Draw(t, "batch"), Rows: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) UsageRow {
			return UsageRow{
				Job: rapid.Uint64().Draw(t, "job"), Task: uint32(number(t, 0, MaxCount-1, "task")), Need: drawResources(t),
				AgoMs: number(t, 0, MaxTimeoutMs, "ago"), RunMs: number(t, 0, MaxTimeoutMs, "run"),
				WaitMs: number(t, 0, MaxTimeoutMs, "wait"),
			}
		}), 0, 3).Draw(t, "rows")}
	case KindSiteLost:
		return &SiteLost{Site: drawSite(t), Incarnation: rapid.Uint64().Draw(t, "inc"), Term: rapid.Uint64().Draw(t, "term")}
	case KindForget:
		return &Forget{Site: drawSite(t)}
	case KindPolicy:
		return &SetParams{Params: drawParams(t)}
	case KindSuspect:
		return &Suspect{Site: drawSite(t), Incarnation: rapid.Uint64().Draw(t, "inc"), On: rapid.Bool().Draw(t, "on")}
	case KindLeave:
		return &Leave{}
	case KindLead:
		return &Lead{Term: rapid.Uint64().Draw(t, "term")}
	case KindClose:
		return &Close{Why: Closure(number(t, 0, int64(LastClosure), "why"))}
	case KindOrphans:
		return &Orphans{Attempts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Ended {
			e := drawEnded(t)
			e.Outcome = Outcome(number(t, int64(Orphaned), int64(Orphaned), "outcome"))
			return e
		}), 0, 3).Draw(t, "attempts")}
	case KindRenice:
		return &Renice{Jobs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Nice {
			return Nice{Num: rapid.Uint64Min(1).Draw(t, "num"), Nice: uint32(number(t, 0, MaxNice, "nice"))}
		}), 0, 3).Draw(t, "jobs")}
	case KindDeliver:
		return &Deliver{Attempts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Delivered {
			return Delivered{drawRef(t), Delivery(number(t, 0, int64(DeliveryFailed), "outcome")), text("detail", MaxDetail)}
		}), 0, 3).Draw(t, "attempts")}
	case KindAhead:
		return &Ahead{IdleMs: number(t, 0, MaxAheadMs, "idle")}
	case KindHandBack:
		b := &HandBack{Reason: text("reason", MaxDetail)}
		b.Attempts = rapid.SliceOfN(rapid.Custom(drawRef), 0, 3).Draw(t, "attempts")
		return b
	case KindRelease:
		return drawRelease(t)
	case KindPrioritize:
		return &Prioritize{Jobs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Priority {
			return Priority{rapid.Uint64Min(1).Draw(t, "num"), int32(number(t, -MaxPriority, MaxPriority, "priority"))}
		}), 0, 3).Draw(t, "jobs")}
	case KindRaise:
		return &Raise{Version: uint32(number(t, FirstVersion, math.MaxUint32, "version"))}
	case KindRecover:
		return &Recover{Epoch: uint64(number(t, 1, MaxEpoch, "epoch")), HoldMs: number(t, 0, MaxTimeoutMs, "hold")}
	case KindBound:
		return &Bound{Attempts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) BoundAttempt {
			return BoundAttempt{drawRef(t), number(t, 1, MaxTimeoutMs, "bound")}
		}), 0, 3).Draw(t, "attempts")}
	default:
		return &Addresses{HTTP: text("http", MaxAddress), Peer: text("peer", MaxAddress), Gossip: text("gossip", MaxAddress)}
	}
}

// TestValidIsDecodable checks that exactly the commands that Validate accepts come back from their
// encoding unchanged, with the same bytes.
func TestValidIsDecodable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Command{
			ID:  ID{Site: drawSite(t), Incarnation: rapid.Uint64().Draw(t, "inc"), Seq: rapid.Uint64().Draw(t, "seq")},
			Ack: rapid.Uint64().Draw(t, "ack"), Body: drawBody(t),
		}
		data := Append(nil, c)
		got, rest, err := Decode(data)
		invalid := c.Validate()
		switch {
		case (invalid == nil) != (err == nil):
			t.Fatalf("Validate says %v, Decode %v", invalid, err)
		case invalid != nil:
			if !errors.Is(invalid, ErrOutOfBounds) || !errors.Is(err, ErrFormat) {
				t.Fatalf("errors without their sentinels: %v, %v", invalid, err)
			}
			return
		}
		if again := Append(nil, got); !bytes.Equal(again, data) || len(rest) != 0 {
			t.Fatalf("not canonical: %x, then %x with %d left", data, again, len(rest))
		}
		if want, have := describe(c.Body), describe(got.Body); want != have || got.ID != c.ID || got.Ack != c.Ack {
			t.Fatalf("got %+v, want %+v", have, want)
		}
	})
}

// describe prints a body without pointers, and with an empty list printed like none.
func describe(body Body) string {
	if d, ok := body.(*Decline); ok && d.Offer != nil {
		return fmt.Sprintf("%+v %q %+v", d.Attempts, d.Reason, *d.Offer)
	}
	return fmt.Sprintf("%+v", body)
}

func TestEveryTruncationIsRefused(t *testing.T) {
	data := specimenBatch().Append(nil)
	for n := range data {
		if _, err := DecodeBatch(data[:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("the first %d of %d bytes: %v, want ErrFormat", n, len(data), err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	id := []byte{1, 'a', 1, 1, 0} // site a, incarnation 1, seq 1, ack 0
	record := func(kind byte, body ...byte) []byte {
		r := slices.Concat([]byte{kind}, id, body)
		return slices.Concat([]byte{byte(len(r))}, r)
	}
	long := protowire.AppendVarint(nil, math.MaxUint64)
	for _, c := range []struct {
		name string
		data []byte
		is   error
		text string
	}{
		{"nothing", nil, ErrFormat, "byte 0"},
		{"a newer format", []byte{Format + 1, 1, 0, 0}, ErrVersion, "upgrade"},
		{"an older format", []byte{Format - 1, 1, 0, 0}, ErrVersion, "version that wrote it"},
		{"bytes after the end", []byte{Format, 1, 0, 0, 0, 7}, ErrFormat, "1 bytes after the last bundle"},
		{"number in too many bytes", []byte{Format, 0x81, 0, 0, 0}, ErrFormat, "byte 1: a number takes 2 bytes where 1"},
		{"number beyond 64 bits", slices.Concat([]byte{Format}, bytes.Repeat([]byte{0xff}, 10), []byte{0, 0}), ErrFormat, "64 bits"},
		{"elapsed beyond int64", slices.Concat([]byte{Format, 1}, long, []byte{0}), ErrFormat, "elapsed"},
		{"more commands than bytes", []byte{Format, 1, 0, 100, 0}, ErrFormat, "100 do not fit"},
		{"more commands than allowed", slices.Concat([]byte{Format, 1, 0}, long), ErrFormat, "more than 65536"},
		{"command longer than the batch", []byte{Format, 1, 0, 1, 9, 0, 0, 0, 0, 0, 0}, ErrFormat, "9 do not fit"},
	} {
		_, err := DecodeBatch(c.data)
		if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.is, c.text)
		}
	}
	end := []byte{1, 1, 'b', 1, 0, 1, 1, 0, 0, 0, endedOutput, 0, 0, 0}
	nothing := slices.Concat(end, make([]byte, 34))
	for _, c := range []struct {
		name string
		data []byte
		is   error
		text string
	}{
		{"unknown kind", record(99), ErrUnknownKind, "kind 99 at byte 1, site a: upgrade"},
		{"kind 0", record(0), ErrUnknownKind, "kind 0"},
		{"body too short", record(byte(KindForget)), ErrFormat, "cut off"},
		{"body too long", record(byte(KindForget), 1, 'b', 0), ErrFormat, "1 bytes after the command's body"},
		{"site in upper case", record(byte(KindForget), 1, 'B'), ErrFormat, `"B" is no site name`},
		{"boolean of 2", record(byte(KindSuspect), 1, 'b', 1, 2), ErrFormat, "on 2 is more than 1"},
		{"task −2", record(byte(KindCancel), 1, 'b', 1, 3, 0), ErrFormat, "task -2"},
		{"job number 0", record(byte(KindCancel), 1, 'b', 0, 0, 0), ErrFormat, "numbered from 1"},
		{"first job that shares", record(byte(KindSubmit), 0, 1, 1, 1, 0, 3), ErrFormat, "job 1 does not share 3"},
		{"job that shares what nobody has", record(byte(KindSubmit), 0, 1, 1, 1, 0, 4), ErrFormat, "shared 4 is more than 3"},
		{"payload written twice", record(byte(KindSubmit), 0, 2, 1, 1, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 1, 0, 1, 0), ErrFormat, "job 2 does not share 1"},
		{"job with marks of nothing", record(byte(KindSubmit), 0, 1, 1, 1, 0, 0, 2, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0), ErrFormat, "marks 8 is more than 7"},
		{"end with flags of nothing", record(byte(KindComplete), 1, 1, 'b', 1, 0, 1, 1, 0, 0, 0, 8, 0, 0, 0), ErrFormat, "flags 8 is more than 7"},
		{"output of nothing", record(byte(KindComplete), nothing...), ErrFormat, "an output of nothing is not written"},
		{"output without a manifest", record(byte(KindComplete), append(nothing[:len(nothing)-1:len(nothing)-1], 7)...), ErrFormat, "an output of 7 bytes has no manifest"},
		{"measured nothing", record(byte(KindComplete), 1, 1, 'b', 1, 0, 1, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0), ErrFormat, "measures nothing is not written"},
		{"measured by nobody", record(byte(KindComplete), 1, 1, 'b', 1, 0, 1, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 9), ErrFormat, "source 9 is more than 4"},
		{"delivery of no kind", record(byte(KindDeliver), 1, 1, 'b', 1, 0, 1, 1, 3, 0), ErrFormat, "outcome 3 is more than 2"},
		{"action of no kind", record(byte(KindRelease), 1, 1, 1, 0, 1, 0, 4, 0), ErrFormat, "action 4 is more than 3"},
		{"run of nothing", record(byte(KindRelease), 1, 1, 1, 3, 3, 0, 0, 0), ErrFormat, "tasks [3, 3) behind task 0"},
		{"runs that overlap", record(byte(KindRelease), 1, 1, 2, 0, 3, 0, 0, 0, 2, 4, 0, 0, 0), ErrFormat, "behind task 3"},
		{"jobs out of order", record(byte(KindRelease), 2, 2, 0, 2, 0), ErrFormat, "num 2 behind 2"},
		{"reason of a release", record(byte(KindRelease), 1, 1, 1, 0, 1, 0, 0, 1, 'x'), ErrFormat, "a reason, but no end"},
		{"priority of job 0", record(byte(KindPrioritize), 1, 0, 2), ErrFormat, "numbered from 1"},
		{"more jobs than bytes", record(byte(KindSubmit), 0, 127), ErrFormat, "127 do not fit"},
		{"labels that are none", record(byte(KindOffer), 1, 1, 0, 0, 0, 0, 0, 0, 0, 0), ErrFormat, "are none, or stand twice"},
		{"labels twice", record(byte(KindOffer), 1, 2, 2, 'a', '=', 2, 'a', '=', 0, 0, 0, 0, 0, 0, 0), ErrFormat, "stand twice"},
		{"labels of no machine", record(byte(KindOffer), 1, 1, 2, 'a', '=', 0, 0, 0, 0, 0, 0, 0), ErrFormat, "1 sets of labels, 0 are used"},
		{"a machine with labels that do not stand there", record(byte(KindOffer), 1, 0, 1, 1, 'm', 0, 0, 0, 0, 0, 0, 0, 0, 1), ErrFormat, "labels 1 is more than 0"},
		{"the second labels first", record(byte(KindOffer), 1, 2, 2, 'a', '=', 2, 'b', '=', 1, 1, 'm', 0, 0, 0, 0, 0, 0, 0, 0, 2), ErrFormat, "labels 2 is more than 1"},
	} {
		_, _, err := Decode(c.data)
		if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.is, c.text)
		}
		good := Append(nil, Command{ID: specimenID, Body: &Leave{}})
		b, err := DecodeBatch(AppendBatch(nil, 3, 7, [][]byte{good, c.data, good}, nil))
		if err != nil || len(b.Commands) != 3 || b.Commands[1] != (Command{Body: Unreadable{}}) ||
			!bytes.Equal(Append(Append(nil, b.Commands[0]), b.Commands[2]), slices.Concat(good, good)) {
			t.Errorf("%s between two others: %+v, %v", c.name, b, err)
		}
	}
}

// TestCountsAllocateOnlyWhatTheInputHolds checks that a batch of few bytes that claims the longest
// list of each kind does not allocate it.
func TestCountsAllocateOnlyWhatTheInputHolds(t *testing.T) {
	count := protowire.AppendVarint(nil, MaxReports)
	var heads [][]byte
	for _, kind := range []Kind{KindStarted, KindComplete, KindDecline, KindDeliver, KindPrioritize} {
		heads = append(heads, []byte{byte(kind), 1, 'a', 1, 1, 0})
	}
	heads = append(heads, []byte{byte(KindUsage), 1, 'a', 1, 1, 0, 0},
		[]byte{byte(KindOffer), 1, 'a', 1, 1, 0, 0}, []byte{byte(KindOffer), 1, 'a', 1, 1, 0, 0, 0})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, head := range heads {
		r := slices.Concat(head, count, make([]byte, 80))
		data := slices.Concat(protowire.AppendVarint(nil, uint64(len(r))), r)
		if _, _, err := Decode(data); !errors.Is(err, ErrFormat) {
			t.Errorf("kind %d: %v, want ErrFormat", head[0], err)
		}
	}
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 64<<10 {
		t.Errorf("%d bytes allocated for inputs of 100 bytes", spent)
	}
}

func TestDecodeRefusesTooLargeABatch(t *testing.T) {
	if _, err := DecodeBatch(make([]byte, MaxBatch+1)); !errors.Is(err, ErrFormat) {
		t.Fatalf("got %v, want ErrFormat", err)
	}
}

func TestValidateNamesFieldAndBound(t *testing.T) {
	for _, c := range []struct {
		spoil func(*JobSpec)
		want  string
	}{
		{func(j *JobSpec) { j.Num = 0 }, "num 0"},
		{func(j *JobSpec) { j.Count = 0 }, "count 0 is not in 1…1000000"},
		{func(j *JobSpec) { j.Count = MaxCount + 1 }, "count 1000001 is not in 1…1000000"},
		{func(j *JobSpec) { j.Need.MilliCPU = 0 }, "milli_cpu 0 is not in 1…1000000000"},
		{func(j *JobSpec) { j.Need.MemMiB = -1 }, "mem_mib -1 is not in 0…1000000000"},
		{func(j *JobSpec) { j.Need.GPU = MaxGPU + 1 }, "gpu 1000001 is not in 0…1000000"},
		{func(j *JobSpec) { j.TimeoutMs = math.MaxInt64 }, "timeout_ms 9223372036854775807 is not in 0…316224000000"},
		{func(j *JobSpec) { j.MaxAttempts = 0 }, "max_attempts 0 is not in 1…1000"},
		{func(j *JobSpec) { j.OnLoss = 3 }, "on_loss 3 is not in 0…2"},
		{func(j *JobSpec) { j.Priority = -MaxPriority - 1 }, "priority -1000001 is not in -1000000…1000000"},
		{func(j *JobSpec) { j.Nice = MaxNice + 1 }, "nice 1001 is not in 0…1000"},
		{func(j *JobSpec) { j.Only = []string{"b", "a"} }, `only: "b", "a" are not sorted`},
		{func(j *JobSpec) { j.Not = []string{"a", "a"} }, `not: "a", "a" are not sorted`},
		{func(j *JobSpec) { j.Not = []string{"A"} }, `not "A" is no site name`},
		{func(j *JobSpec) { j.Only = make([]string, MaxSiteNames+1) }, "only 1001 is not in 0…1000"},
		{func(j *JobSpec) { j.Selectors = []string{"a in (2,1)"} }, `selector "a in (2,1)" must be written "a in (1,2)"`},
		{func(j *JobSpec) { j.Selectors = []string{"b", "a"} }, `selectors "b", "a" are not sorted`},
		{func(j *JobSpec) { j.Selectors = []string{"-"} }, `selector "-": must be KEY, !KEY, KEY=VALUE`},
		{func(j *JobSpec) { j.Selectors = make([]string, MaxSelectors+1) }, "selectors 17 is not in 0…16"},
		{func(j *JobSpec) { j.CreatedMs = -1 }, "created_ms -1"},
		{func(j *JobSpec) { j.Payload = make([]byte, MaxPayload+1) }, "bytes of payload"},
	} {
		j := JobSpec{Num: 1, Count: 1, Need: Resources{MilliCPU: 1}, MaxAttempts: 1}
		if err := j.Validate(); err != nil {
			t.Fatal(err)
		}
		c.spoil(&j)
		if err := j.Validate(); !errors.Is(err, ErrOutOfBounds) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestParamsValidate(t *testing.T) {
	if err := DefaultParams().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spoil func(*Params)
		want  string
	}{
		{func(p *Params) { p.Policy = "LOTTERY" }, "ROUND_ROBIN"},
		{func(p *Params) { p.Running = 2 }, "running mode"},
		{func(p *Params) { p.RateCPU = 0 }, "all 0"},
		{func(p *Params) { p.RateGPU = MaxRate + 1 }, "rate_gpu 1001 is not in 0…1000"},
		{func(p *Params) { p.QuantumMs = 0 }, "quantum_ms 0 is not in 1…3600000"},
		{func(p *Params) { p.RetainJobs = -1 }, "retain_jobs -1"},
		{func(p *Params) { p.ReserveAfterMs = -1 }, "reserve_after_ms -1"},
	} {
		p := DefaultParams()
		c.spoil(&p)
		if err := p.Validate(); !errors.Is(err, ErrOutOfBounds) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestOfferValidate(t *testing.T) {
	for _, c := range []struct {
		spoil func(*Offer)
		want  string
	}{
		{func(o *Offer) { o.Machines[1].Name = "m1" }, "not sorted and unique"},
		{func(o *Offer) { o.Machines[0].Name = "" }, "machine's name 0"},
		{func(o *Offer) { o.Machines[0].Name = "a\nb" }, "printable"},
		{func(o *Offer) { o.Machines[0].MilliCPU = MaxMilliCPU }, "all machines' milli_cpu 1000064000 is not in 0…1000000000"},
		{func(o *Offer) { o.Home.GPU = -1 }, "home's gpu -1"},
		{func(o *Offer) { o.Machines[1].Runs = RunsBoth + 1 }, "runs 3 is not in 0…2"},
		{func(o *Offer) { o.Machines = make([]Machine, MaxMachines+1) }, "machines 10001"},
		{func(o *Offer) { o.Machines[1].Slots = MaxSlots + 1 }, "slots 1000001 is not in 0…1000000"},
		{func(o *Offer) { o.Machines[1].Labels = "b=1,a=1" }, `machine "m2": out of bounds: labels "b", "a" are not sorted`},
		{func(o *Offer) { o.Machines[1].Labels = "a=-" }, `value "-" of label a`},
		{func(o *Offer) { *o = *manyLabels(MaxLabelSets + 1) }, "different labels of machines 1001 is not in 0…1000"},
	} {
		o := specimenOffer()
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		c.spoil(o)
		if err := o.Validate(); !errors.Is(err, ErrOutOfBounds) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// manyLabels returns an offer with a number of different sets of labels, each as long as allowed.
func manyLabels(sets int) *Offer {
	o := &Offer{Version: math.MaxUint64, Machines: make([]Machine, MaxMachines)}
	for i := range o.Machines {
		m := &o.Machines[i]
		m.Name = fmt.Sprintf("%0*d", MaxMachineName, i)
		m.Labels = Labels(fmt.Sprintf("a=%04d", i%sets))
		for k := range 28 {
			m.Labels += Labels(fmt.Sprintf(",k%02d=%s", k, strings.Repeat("v", MaxLabelValue)))
		}
		m.Slots, m.Runs = MaxSlots, RunsBoth
	}
	return o
}

// alien is a body that no version encodes.
type alien struct{}

func (alien) Kind() Kind { return 200 }

func TestValidateRefusesWhatCannotBeEncoded(t *testing.T) {
	for _, body := range []Body{nil, alien{}} {
		c := Command{ID: specimenID, Body: body}
		if err := c.Validate(); !errors.Is(err, ErrOutOfBounds) {
			t.Errorf("%T: %v, want ErrOutOfBounds", body, err)
		}
	}
}

// TestGreatestCommandsFit checks that what Validate accepts never exceeds MaxCommand.
func TestGreatestCommandsFit(t *testing.T) {
	site := strings.Repeat("s", 63)
	id := ID{Site: site, Incarnation: math.MaxUint64, Seq: math.MaxUint64}
	ref := AttemptRef{
		Job: JobID{site, math.MaxUint64}, Task: MaxCount - 1, Attempt: math.MaxUint32, Token: math.MaxUint64,
	}
	ended := Ended{
		AttemptRef: ref, Outcome: Lost, ExitCode: math.MinInt32, Signal: math.MinInt32, Ran: true,
		DelayMs: MaxTimeoutMs, RunMs: MaxTimeoutMs, Detail: strings.Repeat("d", MaxDetail),
		Output:   Output{Manifest: [32]byte{1}, Size: MaxManifest, Bytes: MaxOutputBytes},
		Measured: Measured{MaxPeakBytes, MaxProcessorMs, MaxProcessorMs, MaxTransfer, MaxTransfer, LastMeasureSource},
	}
	deliver := Delivered{AttemptRef: ref, Outcome: DeliveryFailed, Detail: strings.Repeat("d", MaxDetail)}
	job := JobSpec{
		Num: math.MaxUint64, Count: MaxCount, Need: Resources{MaxMilliCPU, MaxMemMiB, MaxGPU},
		Image: true, Delivers: true, Gated: true,
		TimeoutMs: MaxTimeoutMs, MaxAttempts: MaxAttempts,
		OnLoss: Never, Priority: -MaxPriority, Only: []string{site}, Not: []string{site}, CreatedMs: MaxUnixMs,
		Selectors: []string{strings.Repeat("s", MaxLabelValue)},
	}
	job.Payload = make([]byte, MaxSubmit/MaxJobsPerSubmit-(&job).SizeBound())
	for _, body := range []Body{
		&Register{
			HTTP: strings.Repeat("h", MaxAddress), Peer: strings.Repeat("p", MaxAddress),
			MaxVersion: math.MaxUint32, Held: slices.Repeat([]AttemptRef{ref}, MaxHeld),
			Lost: slices.Repeat([]AttemptRef{ref}, MaxHeld),
		},
		&Complete{Attempts: slices.Repeat([]Ended{ended}, MaxReports)},
		&Deliver{Attempts: slices.Repeat([]Delivered{deliver}, MaxReports)},
		greatRelease(),
		&Submit{Settled: math.MaxUint64, Jobs: slices.Repeat([]JobSpec{job}, MaxJobsPerSubmit)},
		manyLabels(MaxLabelSets),
	} {
		c := Command{ID: id, Ack: math.MaxUint64, Body: body}
		if err := c.Validate(); err != nil {
			t.Fatalf("%T: %v", body, err)
		}
		data := Append(nil, c)
		if len(data) > MaxCommand {
			t.Errorf("%T takes %d bytes, at most %d allowed", body, len(data), MaxCommand)
		}
		if _, _, err := Decode(data); err != nil {
			t.Errorf("%T: %v", body, err)
		}
	}
	over := &Submit{Jobs: slices.Repeat([]JobSpec{job}, 17)}
	for i := range over.Jobs {
		over.Jobs[i].Payload = make([]byte, MaxPayload)
	}
	if err := over.Validate(); !errors.Is(err, ErrOutOfBounds) {
		t.Errorf("17 payloads of the greatest size: %v, want ErrOutOfBounds", err)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"timeout after 90s", "timeout after 90s"},
		{"two\nlines\x00", "two lines "},
		{"bad \xff byte", "bad ? byte"},
		{strings.Repeat("a", MaxDetail+1), strings.Repeat("a", MaxDetail)},
		{strings.Repeat("a", MaxDetail-1) + "…", strings.Repeat("a", MaxDetail-1)},
		{strings.Repeat("a", MaxDetail-3) + "…b", strings.Repeat("a", MaxDetail-3) + "…"},
		{strings.Repeat("\xff", MaxDetail+9), ""},
	} {
		if got := Clip(c.in); c.want != "" && got != c.want || len(got) > MaxDetail {
			t.Errorf("Clip(%.20q…) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(specimenBatch().Append(nil))
	f.Add((&Batch{Term: 1}).Append(nil))
	for _, body := range specimens() {
		f.Add((&Batch{Term: 1, Elapsed: 1, Commands: []Command{{ID: specimenID, Body: body}}}).Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := DecodeBatch(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrVersion) {
				t.Fatalf("no sentinel in %v", err)
			}
			return
		}
		if slices.ContainsFunc(b.Commands, func(c Command) bool { return c.Body == Unreadable{} }) {
			return
		}
		if again := b.Append(nil); !bytes.Equal(again, data) {
			t.Fatalf("not canonical:\n%x\n%x", data, again)
		}
	})
}

// benchBatch returns a batch of n jobs of typical size, perSubmit of them in a command.
func benchBatch(n, perSubmit int) *Batch {
	b := &Batch{Term: 3, Elapsed: 123_456}
	payload := bytes.Repeat([]byte("x"), 100)
	for i := range n / perSubmit {
		jobs := make([]JobSpec, perSubmit)
		for k := range jobs {
			jobs[k] = JobSpec{
				Num: uint64(100_000 + i*perSubmit + k), Count: 1, Need: Resources{1000, 256, 0}, MaxAttempts: 1,
				CreatedMs: 1_700_000_000_000, Payload: payload,
			}
		}
		b.Commands = append(b.Commands, Command{
			ID: ID{"site-1", 1, uint64(i + 1000)}, Ack: uint64(i + 990),
			Body: &Submit{Settled: 100_000, Jobs: jobs},
		})
	}
	return b
}

func BenchmarkCodec(b *testing.B) {
	const jobs = 1000
	for _, perSubmit := range []int{1, jobs} {
		batch := benchBatch(jobs, perSubmit)
		data := batch.Append(nil)
		perJob := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jobs, "ns/job")
		}
		b.Run(fmt.Sprintf("decode/jobs-per-command=%d", perSubmit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeBatch(data); err != nil {
					b.Fatal(err)
				}
			}
			perJob(b)
		})
		b.Run(fmt.Sprintf("encode/jobs-per-command=%d", perSubmit), func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, len(data))
			for b.Loop() {
				buf = batch.Append(buf[:0])
			}
			perJob(b)
		})
	}
}

// greatRelease is the longest Release.
func greatRelease() *Release {
	b := &Release{}
	for i := range uint64(MaxJobsPerSubmit) {
		b.Jobs = append(b.Jobs, JobGates{Num: math.MaxUint64 - MaxJobsPerSubmit + i})
	}
	for i := range uint32(MaxReports) {
		b.Jobs[0].Runs = append(b.Jobs[0].Runs, GateRun{
			From: MaxCount - MaxReports + i, To: MaxCount - MaxReports + i + 1, Attempt: AnyAttempt, Do: GateCancel,
			Reason: strings.Repeat("r", MaxDetail),
		})
	}
	return b
}

// TestReleasesAreBoundedWhileRead: all runs of a command are counted while it is decoded, so that a long one does not
// take the memory of many full lists before it is refused.
func TestReleasesAreBoundedWhileRead(t *testing.T) {
	b := &Release{}
	for num := range uint64(3) {
		g := JobGates{Num: num + 1}
		for i := range uint32(MaxReports / 2) {
			g.Runs = append(g.Runs, GateRun{From: i, To: i + 1})
		}
		b.Jobs = append(b.Jobs, g)
	}
	read := func(n int) error {
		_, _, err := Decode(Append(nil, Command{ID: specimenID, Body: &Release{Jobs: b.Jobs[:n]}}))
		return err
	}
	if err := read(2); err != nil {
		t.Error(err)
	}
	if err := read(3); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "runs 5000 is more than 0") {
		t.Error(err)
	}
}
