package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestLimiter(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	l := newLimiter(time.Minute, c.now)
	say := func(kind string, wantUnsaid uint64, want bool) {
		t.Helper()
		if unsaid, ok := l.allow(kind); unsaid != wantUnsaid || ok != want {
			t.Fatalf("%s: %d, %v", kind, unsaid, ok)
		}
	}
	say("a", 0, true)
	say("a", 0, false)
	say("a", 0, false)
	say("b", 0, true)
	c.at = c.at.Add(time.Minute)
	say("a", 2, true)
	for i := range 10 * maxKinds {
		l.allow(fmt.Sprint("kind ", i))
	}
	if len(l.kinds) > maxKinds+1 {
		t.Fatalf("%d kinds", len(l.kinds))
	}
}

func TestChatter(t *testing.T) {
	buf := &logBuffer{}
	var suspects []string
	ch := &logAdapter{
		log: zerolog.New(buf).Level(zerolog.InfoLevel), limit: newLimiter(time.Minute, time.Now),
		suspect: func(s string) { suspects = append(suspects, s) },
	}
	log := ch.logger()
	log.Printf("[INFO] memberlist: Suspect site-1 has failed, no acks received")
	log.Printf("[DEBUG] memberlist: Suspicion is no suspect line")
	log.Printf("[INFO] memberlist: Suspect ")
	if len(suspects) != 1 || suspects[0] != "site-1" {
		t.Fatalf("suspects %q", suspects)
	}
	for i := range 100 {
		log.Printf("[ERR] memberlist: Decrypt packet failed: reason %d\nsecond line", i)
	}
	log.Print("without a level ", strings.Repeat("x", 10000))
	log.Print("")
	if lines := buf.lines("gossip: "); len(lines) != 3 || !strings.Contains(lines[0], `"warn"`) || len(lines[1]) > 600 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	ch.quiet.Store(true)
	log.Printf("[ERR] memberlist: another kind of complaint")
	if n := len(buf.lines("another")); n != 0 {
		t.Fatal("it complains after Close")
	}
}

// TestWrongGossipAddress: a site that tells an address where nobody is learns it, and
// so does who is at the address that it tells.
func TestWrongGossipAddress(t *testing.T) {
	a := open(t, "a", nil)
	port := freePort(t)
	b := open(t, "b", func(c *Config) { c.Advertise = "127.0.0.1:" + port }, a)
	line := b.log.await(t, "others hear nobody at the address that this site tells: correct `advertise` or `gossip` here")
	if !strings.Contains(line[0], "127.0.0.1:"+port) {
		t.Errorf("%s", line[0])
	}
	d := open(t, "d", nil, a)
	a.awaitState("d", Alive)
	c := open(t, "c", func(cfg *Config) { cfg.Advertise = a.Addr().String() }, d)
	line = a.log.await(t, "correct its `advertise` or `gossip`, and restart it")
	if !strings.Contains(line[0], `"site":"c"`) {
		t.Errorf("%s", line[0])
	}
	if n := len(c.log.lines("Refuting")); n != 0 {
		t.Errorf("%d lines of memberlist's own", n)
	}
}
