package membership

import (
	"fmt"
	"testing"
	"time"
)

// clock is set by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func testTable() (*table, *clock) {
	c := &clock{at: time.Unix(1000, 0)}
	return newTable("me", c.now), c
}

var (
	addr1 = addrPort("10.0.0.1:1")
	addr2 = addrPort("10.0.0.2:2")
)

func TestStatesOfAMember(t *testing.T) {
	tb, c := testTable()
	expect := func(s State, since time.Time) {
		t.Helper()
		if m := tb.members()[0]; m.State != s || !m.Since.Equal(since) {
			t.Fatalf("%v since %v, want %v since %v", m.State, m.Since, s, since)
		}
	}
	step := func() time.Time { c.at = c.at.Add(time.Second); return c.at }

	born := c.at
	tb.present("a", addr1, meta{})
	expect(Alive, born)
	at := step()
	tb.suspected("a")
	expect(Suspect, at)
	step()
	tb.suspected("a") // again: nothing new
	expect(Suspect, at)
	tb.heard("a", addr2) // somebody else under its name
	expect(Suspect, at)
	tb.heard("a", addr1)
	at = c.at
	expect(Alive, at)
	at = step()
	tb.gone("a")
	expect(Dead, at)
	step()
	tb.suspected("a") // the dead are not suspected
	tb.gone("a")
	expect(Dead, at)
	at = step()
	tb.present("a", addr1, meta{leaving: true})
	expect(Left, at)
	step()
	tb.gone("a")
	expect(Left, at)
	tb.suspected("nobody")
	tb.gone("nobody")
	if n := len(tb.members()); n != 1 {
		t.Fatalf("%d members", n)
	}
}

// A reader sees the last state of every site, and no more than one piece of
// news a site waits.
func TestNewsIsCoalescedAndNotLost(t *testing.T) {
	tb, _ := testTable()
	for i := range 1000 {
		tb.present("a", addr1, meta{incarnation: uint64(i)})
		tb.gone("a")
	}
	tb.present("b", addr2, meta{})
	if len(tb.fresh) != 2 {
		t.Fatalf("%d pieces of news wait", len(tb.fresh))
	}
	m, version, _ := tb.next()
	if m.Site != "a" || m.Incarnation != 999 || m.State != Dead {
		t.Fatalf("news is %+v", m)
	}
	tb.present("a", addr1, meta{incarnation: 1000}) // while it is being read
	tb.read("a", version)
	if m, version, _ = tb.next(); m.Incarnation != 1000 {
		t.Fatalf("news is %+v", m)
	}
	tb.read("a", version)
	if m, version, _ = tb.next(); m.Site != "b" {
		t.Fatalf("news is %+v", m)
	}
	tb.read("b", version)
	if _, _, ok := tb.next(); ok {
		t.Fatal("there is news that was read")
	}
}

func TestConflictShowsTheGreaterIncarnation(t *testing.T) {
	tb, c := testTable()
	tb.present("a", addr1, meta{incarnation: 5})
	if !tb.contested("a", addr2, meta{incarnation: 4}) || tb.contested("a", addr2, meta{incarnation: 4}) {
		t.Fatal("a claim is new once")
	}
	if m := tb.members()[0]; m.Addr != addr1 || m.Rival != addr2 || m.Incarnation != 5 {
		t.Fatalf("%+v", m)
	}
	tb.contested("a", addr2, meta{incarnation: 6})
	tb.gone("a")
	if m := tb.members()[0]; m.Addr != addr2 || m.Rival != addr1 || m.Incarnation != 6 || m.State != Alive {
		t.Fatalf("%+v", m)
	}
	tb.present("a", addr2, meta{incarnation: 6}) // memberlist took it over
	if m := tb.members()[0]; m.Rival.IsValid() || m.Addr != addr2 {
		t.Fatalf("%+v", m)
	}
	tb.contested("a", addr1, meta{incarnation: 5})
	c.at = c.at.Add(time.Minute)
	tb.expire(time.Minute)
	if m := tb.members()[0]; !m.Rival.IsValid() {
		t.Fatal("a claim was dropped early")
	}
	c.at = c.at.Add(1)
	tb.expire(time.Minute)
	if m := tb.members()[0]; m.Rival.IsValid() {
		t.Fatal("a claim was kept")
	}
	if tb.contested("nobody", addr1, meta{}) {
		t.Fatal("a claim of nobody's name")
	}
}

func TestTableIsBounded(t *testing.T) {
	tb, c := testTable()
	for i := range MaxMembers {
		site := fmt.Sprintf("s%d", i)
		if err := tb.admit(site); err != nil {
			t.Fatal(err)
		}
		tb.present(site, addr1, meta{})
	}
	if err := tb.admit("late"); err == nil {
		t.Fatal("a full table took one more")
	}
	if err := tb.admit("s7"); err != nil {
		t.Fatal("a known site was refused")
	}
	c.at = c.at.Add(time.Second)
	tb.gone("s9")
	c.at = c.at.Add(time.Second)
	tb.gone("s8")
	if err := tb.admit("late"); err != nil {
		t.Fatal(err)
	}
	tb.present("late", addr2, meta{})
	if n := len(tb.members()); n != MaxMembers {
		t.Fatalf("%d members", n)
	}
	if tb.sites["s9"] != nil || tb.sites["s8"] == nil {
		t.Fatal("not the one that was gone for longest was forgotten")
	}
	if len(tb.fresh) != MaxMembers {
		t.Fatalf("%d pieces of news", len(tb.fresh))
	}
}
