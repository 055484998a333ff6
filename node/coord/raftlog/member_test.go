package raftlog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), coordtest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func (c *cluster) open(t *testing.T, site string) *Log {
	t.Helper()
	return c.Open(t, site, coordtest.NewMachine()).(*Log)
}

// openErr opens with a changed configuration and wants one error, whose text
// names what to do.
func (c *cluster) openErr(t *testing.T, site string, want error, change func(*Config), texts ...string) {
	t.Helper()
	cfg := c.config(site, coordtest.NewMachine())
	change(&cfg)
	l, err := Open(patience(t), cfg)
	if err == nil {
		_ = l.Close()
	}
	if !errors.Is(err, want) {
		t.Fatalf("open: %v, not %v", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than a line", err)
	}
}

func register(t *testing.T, l *Log) command.ID {
	t.Helper()
	r, err := l.Propose(patience(t), command.Command{
		ID: command.ID{Site: l.cfg.Site}, Body: &command.Register{Node: l.cfg.Node, Boot: [16]byte{1}},
	})
	if err != nil || r[0].Code != command.OK {
		t.Fatalf("register: %v %v", r, err)
	}
	return command.ID{Site: l.cfg.Site, Incarnation: r[0].Incarnation, Seq: 1}
}

func TestOpenNeedsOneWayIn(t *testing.T) {
	c := newCluster(t)
	dir := filepath.Join(c.dir, "a")
	c.openErr(t, "a", ErrNoData, func(cfg *Config) { cfg.Bootstrap = false }, dir, "--bootstrap", "--join")
	c.openErr(t, "a", ErrConfig, func(cfg *Config) { cfg.Join = []string{"127.0.0.1:1"} }, "exclude")
	c.openErr(t, "a", ErrConfig, func(cfg *Config) { cfg.Federation = [16]byte{} }, "federation")
	c.openErr(t, "a", ErrConfig, func(cfg *Config) { cfg.Listen = "0.0.0.0:0" }, "advertise")

	a := c.open(t, "a")
	c.openErr(t, "a", ErrLocked, func(cfg *Config) { cfg.Listen = "127.0.0.1:0" }, dir, "stop it")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	c.openErr(t, "a", ErrExistingData, func(cfg *Config) { cfg.Bootstrap, cfg.Federation = true, c.fed }, dir, "without --bootstrap")
	c.openErr(t, "a", ErrExistingData, func(cfg *Config) { cfg.Join = []string{"127.0.0.1:1"} }, dir)
	c.openErr(t, "a", ErrIdentity, func(cfg *Config) { cfg.Site = "z" }, "its own name")
	c.openErr(t, "a", ErrIdentity, func(cfg *Config) { cfg.Node = [16]byte{9} }, dir)
	c.openErr(t, "a", ErrIdentity, func(cfg *Config) { cfg.Federation = [16]byte{9} }, "federation")
	c.open(t, "a")
}

// A founder that crashed between claiming its directory and founding the group
// founds it when it starts again.
func TestFounderCrash(t *testing.T) {
	c := newCluster(t)
	cfg := c.config("a", coordtest.NewMachine())
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := newMember(&cfg, lineage{federation: c.fed, id: c.fed}).save(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	cfg.Bootstrap, cfg.Federation = false, [16]byte{}
	a, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	register(t, a)
	if a.Federation() != c.fed {
		t.Errorf("federation %x", a.Federation())
	}
}

func TestJoinRefusals(t *testing.T) {
	c := newCluster(t)
	a, b := c.open(t, "a"), c.open(t, "b")
	register(t, a)
	register(t, b)
	if b.Federation() != c.fed {
		t.Errorf("b learned federation %x", b.Federation())
	}
	// Asked at a member that does not lead, too.
	for _, at := range []*Log{a, b} {
		here := []string{at.Addr()}
		c.openErr(t, "new", coord.ErrForeign, func(cfg *Config) { cfg.Join, cfg.Federation = here, [16]byte{9} }, "federation")
		c.openErr(t, "new", coord.ErrJoinRefused, func(cfg *Config) {
			cfg.Join, cfg.Site, cfg.Node, cfg.Dir = here, "b", [16]byte{9}, filepath.Join(c.dir, "wiped")
		}, "b belongs to node")
		c.openErr(t, "new", coord.ErrJoinRefused, func(cfg *Config) {
			cfg.Join, cfg.Advertise = here, b.Addr()
		}, `is site "b"`, "correct `advertise`")
	}
}

func TestJoinNobody(t *testing.T) {
	c := newCluster(t)
	cfg := c.config("a", coordtest.NewMachine())
	cfg.Bootstrap, cfg.Join = false, []string{"127.0.0.1:1"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Open(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("join where nobody is: %v", err)
	}
	// The directory is still empty: it may found or join as if nothing had been.
	c.open(t, "a")
}

// Two new nodes of one name, before either has registered.
func TestJoinNameTakenByLiveNode(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	c.open(t, "b")
	c.openErr(t, "other", coord.ErrJoinRefused, func(cfg *Config) {
		cfg.Join, cfg.Site, cfg.Node = []string{a.Addr()}, "b", [16]byte{9}
	}, "another data directory")
}

func TestAddressChange(t *testing.T) {
	c := newCluster(t)
	a, b := c.open(t, "a"), c.open(t, "b")
	register(t, a)
	register(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := c.config("b", coordtest.NewMachine())
	cfg.Listen = "127.0.0.1:0"
	b, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// It hears the leader only once the leader knows where it is.
	for ctx := patience(t); !b.Status().CaughtUp; {
		select {
		case <-b.Changed():
		case <-ctx.Done():
			t.Fatalf("b stays unheard at %s: %+v", b.Addr(), b.Status())
		}
	}
}

func TestPromotions(t *testing.T) {
	now := time.Unix(1000, 0)
	old, fresh := now.Add(-time.Minute), now.Add(-time.Second)
	for _, tc := range []struct {
		name       string
		voters     int
		candidates []candidate
		want       []string
	}{
		{"one alone stays one", 1, []candidate{{"b", old}}, nil},
		{"one and two make three", 1, []candidate{{"c", old}, {"b", old}}, []string{"b", "c"}},
		{"longest healthy first", 1, []candidate{{"b", old}, {"c", old}, {"d", old.Add(-1)}}, []string{"d", "b"}},
		{"not before it is stable", 1, []candidate{{"b", old}, {"c", fresh}}, nil},
		{"not while unhealthy", 1, []candidate{{"b", old}, {"c", time.Time{}}}, nil},
		{"an even number is filled", 2, []candidate{{"c", old}, {"d", old}}, []string{"c"}},
		{"three and two make five", 3, []candidate{{"d", old}, {"e", old}, {"f", old}}, []string{"d", "e"}},
		{"three and one stay three", 3, []candidate{{"d", old}}, nil},
		{"four and one make five", 4, []candidate{{"e", old}}, []string{"e"}},
		{"five is the most", 5, []candidate{{"f", old}, {"g", old}}, nil},
	} {
		var got []string
		for _, id := range promotions(tc.voters, tc.candidates, now, 30*time.Second) {
			got = append(got, string(id))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, not %v", tc.name, got, tc.want)
		}
	}
}

func TestDemotion(t *testing.T) {
	now := time.Unix(1000, 0)
	old, fresh := now.Add(-time.Minute), now.Add(-time.Second)
	spare := []candidate{{"x", old}}
	for _, tc := range []struct {
		name string
		c    census
		want raft.ServerID
	}{
		{"nobody is away", census{voters: 3, healthy: 3, candidates: spare}, ""},
		{"one of three", census{voters: 3, healthy: 2, away: []candidate{{"b", old}}, candidates: spare}, "b"},
		{"not before it is away for long", census{voters: 3, healthy: 2, away: []candidate{{"b", fresh}}, candidates: spare}, ""},
		{"nobody to take the place", census{voters: 3, healthy: 2, away: []candidate{{"b", old}}}, ""},
		{"who could take it is not stable", census{
			voters: 3, healthy: 2, away: []candidate{{"b", old}},
			candidates: []candidate{{"x", fresh}, {"y", time.Time{}}},
		}, ""},
		{"one after the other, longest first", census{voters: 5, healthy: 3, away: []candidate{{"b", old}, {"c", old.Add(-1)}}, candidates: spare}, "c"},
		{"not while another is doubtful", census{voters: 5, healthy: 3, away: []candidate{{"b", old}, {"c", fresh}}, candidates: spare}, ""},
		{"not while another lags", census{voters: 5, healthy: 3, away: []candidate{{"b", old}}, candidates: spare}, ""},
		{"the rest is no quorum", census{voters: 5, healthy: 2, away: []candidate{{"b", old}, {"c", old}, {"d", old}}, candidates: spare}, ""},
	} {
		tc.c.now = now
		got, ok := tc.c.demotion(30*time.Second, 30*time.Second)
		if got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q, not %q", tc.name, got, tc.want)
		}
	}
}

// voters waits until these are the voters, as the leader of the moment sees it.
func (c *cluster) voters(t *testing.T, want ...string) {
	t.Helper()
	for ctx := patience(t); ; {
		got := c.leader(t).Status().Voters
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("voters %v, not %v", got, want)
		}
	}
}

// A voter that stays away gives its place to a non-voter, so that the group
// survives the next loss; when it returns it is a member without a vote.
func TestAbsentVoterIsReplaced(t *testing.T) {
	c := newCluster(t)
	c.time.replace = 400 * time.Millisecond
	a := c.open(t, "a")
	b := c.open(t, "b")
	c.open(t, "cc")
	c.voters(t, "a", "b", "cc")
	c.open(t, "d")
	register(t, b)
	c.Cut("b")
	c.voters(t, "a", "cc", "d")
	c.Cut("cc") // two of the founding three are away
	register(t, a)
	c.Heal("b")
	c.voters(t, "a", "b", "d")
	c.Heal("cc")
	register(t, b)
	if _, err := c.logs["cc"].Sync(patience(t)); err != nil {
		t.Errorf("the one that was replaced: %v", err)
	}
}

// Five voters of seven sites: two are lost at once, and two more later. Three
// are a quorum only because the first two were replaced.
func TestSevenSitesLoseFourInTurn(t *testing.T) {
	c := newCluster(t)
	c.time.replace = 400 * time.Millisecond
	for _, s := range []string{"a", "b", "cc", "d", "e"} {
		c.open(t, s)
	}
	c.voters(t, "a", "b", "cc", "d", "e")
	c.open(t, "f")
	c.open(t, "g")
	c.Cut("b")
	c.Cut("d")
	c.voters(t, "a", "cc", "e", "f", "g")
	c.Cut("a")
	c.Cut("cc") // four of the first five are gone
	register(t, c.logs["f"])
}

// Who laid down its vote is not chosen again until it stands.
func TestRestingIsNotPromoted(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	b := c.open(t, "b")
	c.open(t, "cc")
	d := c.open(t, "d")
	if err := d.Demote(patience(t), "d"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil { // a member that goes on would ask to join again
		t.Fatal(err)
	}
	if err := c.leader(t).Remove(patience(t), "b"); err != nil {
		t.Fatal(err)
	}
	c.voters(t, "a", "cc")
	// Several looks at a stable d.
	<-time.After(5 * c.time.stable)
	c.voters(t, "a", "cc")
	d.Stand()
	c.voters(t, "a", "cc", "d")
}

// The others could not order anything without it.
func TestDemoteNeedsTheOthers(t *testing.T) {
	c := newCluster(t)
	for _, s := range []string{"a", "b", "cc"} {
		c.open(t, s)
	}
	lead := c.leader(t)
	var rest []*Log
	for _, l := range c.running() {
		if l != lead {
			rest = append(rest, l)
		}
	}
	c.Cut(rest[0].cfg.Site)
	err := rest[1].Demote(patience(t), rest[1].cfg.Site)
	if !errors.Is(err, coord.ErrRefused) || !strings.Contains(err.Error(), "no quorum") {
		t.Errorf("demoting one of the last two: %v", err)
	}
	if rest[1].Resting() {
		t.Error("refused, and yet it does not stand")
	}
	register(t, lead)
}

func TestVotersStayOdd(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	c.open(t, "b")
	if v := a.Status().Voters; !slices.Equal(v, []string{"a"}) {
		t.Errorf("voters of two members: %v", v)
	}
	c.open(t, "cc")
	d := c.open(t, "d")
	if s := d.Status(); len(s.Voters) > 3 {
		t.Errorf("voters of four members: %v", s.Voters)
	}
	if err := c.leader(t).Remove(patience(t), "b"); err != nil {
		t.Fatal(err)
	}
	for ctx := patience(t); !slices.Equal(a.Status().Voters, []string{"a", "cc", "d"}); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("d did not take b's place: %+v", a.Status())
		}
	}
}

func TestLastVoterStays(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	if err := a.Remove(patience(t), "a"); !errors.Is(err, coord.ErrRefused) {
		t.Errorf("removing the only voter: %v", err)
	}
}

// The leader leaves: it hands over, and the next leader removes it.
func TestRemoveLead(t *testing.T) {
	c := newCluster(t)
	c.open(t, "a")
	c.open(t, "b")
	c.open(t, "cc")
	lead := c.leader(t)
	if err := lead.Remove(patience(t), lead.cfg.Site); err != nil {
		t.Fatal(err)
	}
}

func TestNewLeadAfterDeath(t *testing.T) {
	c := newCluster(t)
	for _, s := range []string{"a", "b", "cc"} {
		c.open(t, s)
	}
	dead := c.leader(t)
	register(t, dead)
	c.Cut(dead.cfg.Site) // no farewell
	var rest []*Log
	for _, l := range c.running() {
		if l != dead {
			rest = append(rest, l)
		}
	}
	id := register(t, rest[0])
	r, err := rest[0].Propose(patience(t), command.Command{ID: id, Body: &command.Addresses{HTTP: "after"}})
	if err != nil || r[0].Code != command.OK {
		t.Errorf("without the old leader: %v %v", r, err)
	}
}

// raft must not pipeline: see TestStoreErrorsDoNotWedge.
func TestNoPipelining(t *testing.T) {
	c := newCluster(t)
	a := c.open(t, "a")
	if _, err := a.trans.AppendEntriesPipeline("b", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("raft may pipeline: %v", err)
	}
}

func TestSnapshotAfterManyBytes(t *testing.T) {
	c := newCluster(t)
	c.time.snapshotBytes, c.time.snapshotEvery = 64<<10, 100*time.Millisecond
	a := c.open(t, "a")
	id := register(t, a)
	job := command.JobSpec{
		Num: 1, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1},
		Payload: make([]byte, 100<<10),
	}
	if _, err := a.Propose(patience(t), command.Command{
		ID:   id,
		Body: &command.Submit{Jobs: []command.JobSpec{job}},
	}); err != nil {
		t.Fatal(err)
	}
	for ctx := patience(t); a.machine.grown.Load() > 64<<10; {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("no snapshot is taken")
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	again := coordtest.NewMachine()
	c.Open(t, "a", again)
	if _, ok := again.Result(id); !ok {
		t.Error("the restored state does not know an executed command")
	}
}

func TestSnapshotOfAnotherVersion(t *testing.T) {
	m := &machine{m: coordtest.NewMachine(), calls: noCalls{}}
	for _, b := range [][]byte{nil, []byte("short"), bytes.Repeat([]byte{7}, 100)} {
		if err := m.Restore(nopCloser{bytes.NewReader(b)}); err == nil {
			t.Errorf("restored %d bytes of garbage", len(b))
		}
	}
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }
