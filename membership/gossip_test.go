package membership

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Three sites, each joining through a different one, all see all; one leaves,
// one dies, one comes back.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	a := open(t, "a", nil)
	b := open(t, "b", nil, a)
	c := open(t, "c", func(cfg *Config) { cfg.Incarnation = 7; cfg.Meta.HTTP = "c.example:80" }, b)
	for _, n := range []*node{a, b, c} {
		for _, site := range []string{"a", "b", "c"} {
			n.awaitState(site, Alive)
		}
	}
	m, _ := a.member("c")
	if m.Incarnation != 7 || m.HTTP != "c.example:80" || m.Peer != "127.0.0.1:7800" || m.Addr != c.Addr() || m.Since.IsZero() {
		t.Fatalf("a sees %+v", m)
	}

	if err := c.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Close()
	a.awaitState("c", Left)
	b.awaitState("c", Left)

	b.Close()
	a.awaitState("b", Dead)

	back := open(t, "b", func(cfg *Config) { cfg.Incarnation = 9 }, a)
	a.await("b", func(m Member) bool { return m.State == Alive && m.Incarnation == 9 && m.Addr == back.Addr() })
	back.awaitState("a", Alive)
}

func TestMetadataChangesAreSeen(t *testing.T) {
	t.Parallel()
	a := open(t, "a", nil)
	b := open(t, "b", nil, a)
	a.awaitState("b", Alive)
	if err := b.UpdateIncarnation(3); err != nil {
		t.Fatal(err)
	}
	a.await("b", func(m Member) bool { return m.Incarnation == 3 && m.Peer == "127.0.0.1:7800" })
	if err := b.SetMeta(Meta{HTTP: "b.example:1"}); err != nil {
		t.Fatal(err)
	}
	a.await("b", func(m Member) bool { return m.HTTP == "b.example:1" && m.Peer == "" && m.Incarnation == 3 })
	b.await("b", func(m Member) bool { return m.HTTP == "b.example:1" })
	if err := b.SetMeta(Meta{HTTP: "no port"}); !errors.Is(err, ErrConfig) {
		t.Fatalf("SetMeta of an address without a port: %v", err)
	}
}

// The same site starts again at once at its old address, as after kill -9.
func TestRestartAtTheSameAddress(t *testing.T) {
	t.Parallel()
	a := open(t, "a", nil)
	addr := "127.0.0.1:" + freePort(t)
	b := open(t, "b", func(cfg *Config) { cfg.Listen = addr }, a)
	a.awaitState("b", Alive)
	b.Close()
	again := open(t, "b", func(cfg *Config) { cfg.Listen, cfg.Incarnation = addr, 2 }, a)
	a.await("b", func(m Member) bool { return m.State == Alive && m.Incarnation == 2 })
	again.awaitState("a", Alive)
}

// Nobody has to be there first, and candidates that are wrong do not matter.
func TestStartsBeforeTheOthers(t *testing.T) {
	t.Parallel()
	addr := make(chan string, 1)
	known := []string{"127.0.0.1:1", "nonsense", "127.0.0.1:notaport", "no-such-host.invalid:7946", ""}
	a := open(t, "a", func(cfg *Config) {
		cfg.Join = func() []string {
			select {
			case s := <-addr:
				known = append(known, s)
			default:
			}
			return known
		}
	})
	b := open(t, "b", nil)
	addr <- b.Addr().String()
	a.awaitState("b", Alive)
	b.awaitState("a", Alive)
}

func TestTwoNodesWithOneName(t *testing.T) {
	t.Parallel()
	a := open(t, "a", nil)
	first := open(t, "twin", func(cfg *Config) { cfg.Incarnation = 1; cfg.Meta.HTTP = "first:1" }, a)
	a.awaitState("twin", Alive)
	second := open(t, "twin", func(cfg *Config) { cfg.Incarnation = 2; cfg.Meta.HTTP = "second:2" }, a)

	m := a.await("twin", func(m Member) bool { return m.Rival.IsValid() })
	if m.HTTP != "second:2" || m.Incarnation != 2 || m.Addr != second.Addr() || m.Rival != first.Addr() || m.State != Alive {
		t.Fatalf("a shows %+v, not the greater incarnation", m)
	}
	if n := len(a.log.lines("two addresses claim one site name")); n != 1 {
		t.Fatalf("%d lines about the conflict", n)
	}
	// The twins learn of each other, too.
	second.await("twin", func(m Member) bool { return m.Rival == first.Addr() })
	second.Close()
	a.await("twin", func(m Member) bool { return m.Rival.IsValid() }) // for a while
}

func TestCloseAndLeave(t *testing.T) {
	t.Parallel()
	a := open(t, "a", nil)
	if err := a.Leave(t.Context()); err != nil { // nobody to tell
		t.Fatal(err)
	}
	if err := a.UpdateIncarnation(1); !errors.Is(err, ErrClosed) {
		t.Fatalf("UpdateIncarnation after Leave: %v", err)
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Leave(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatalf("Leave after Close: %v", err)
	}
	for range a.Events() { // ends
	}

	// A caller that is in a hurry does not stop the leave.
	b := open(t, "b", nil)
	c := open(t, "c", nil, b)
	c.awaitState("b", Alive)
	b.awaitState("c", Alive) // it answers c before it notes it, and would have nobody to tell
	ctx, cancel := context.WithCancelCause(t.Context())
	hurry := errors.New("hurry")
	cancel(hurry)
	if err := b.Leave(ctx); err != nil && !errors.Is(err, hurry) {
		t.Fatal(err)
	}
	b.Close()
	c.awaitState("b", Left)
}

// Sites that stop at once: when the others have left, memberlist sends nothing to anybody, and a leave under way waited
// for as long as news may take, twice.
func TestLastToLeaveWaitsForNobody(t *testing.T) {
	t.Parallel()
	const spread = 10 * time.Second
	// It tells nobody anything by itself: its news is still unsent when the others have left.
	last := open(t, "last", func(cfg *Config) { cfg.timing.gossip, cfg.timing.spread = time.Minute, spread })
	var others []*node
	for _, site := range []string{"b", "c"} {
		n := open(t, site, nil, last)
		last.awaitState(site, Alive)
		n.awaitState("last", Alive)
		others = append(others, n)
	}
	left := make(chan error, 1)
	go func() { left <- errors.Join(last.Leave(t.Context()), last.Close()) }()
	for _, n := range others {
		if err := errors.Join(n.Leave(t.Context()), n.Close()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-left:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(spread / 2):
		t.Fatal("it waits though nobody is left to hear it")
	}
}

// The figure that the LAN profile promises, and what the machine stood still meanwhile; the test log has the measured
// one.
func TestDeathIsSeenSoonOnLAN(t *testing.T) {
	t.Parallel()
	lan := func(cfg *Config) { cfg.timing = nil }
	a := open(t, "a", lan)
	b := open(t, "b", lan, a)
	c := open(t, "c", lan, a)
	a.awaitState("c", Alive)
	b.awaitState("c", Alive)
	start, late := time.Now(), watchLateness(t)
	c.Close()
	a.await("c", func(m Member) bool { return m.State == Suspect || m.State == Dead })
	suspect := time.Since(start)
	a.awaitState("c", Dead)
	dead, stood := time.Since(start), late.sum()
	t.Logf("suspect after %v, dead after %v, of which the machine stood still for %v", suspect, dead, stood)
	if dead < time.Second && stood < lateEnough || dead > 6*time.Second+8*stood {
		t.Errorf("dead after %v, of which the machine stood still for %v", dead, stood)
	}
}
