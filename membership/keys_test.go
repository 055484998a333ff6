package membership

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func testKey(n byte) []byte { return bytes.Repeat([]byte{n}, KeyBytes) }

// The ring of a broker through two changes of keys.
func TestKeysFollowEachOther(t *testing.T) {
	t.Parallel()
	var now time.Time
	k, err := newKeys(testKey(0), 0, time.Second, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		what  string
		after time.Duration
		set   uint64 // generation; 0 = a look
		alone bool
		ring  []byte // the first is sent with
	}
	for _, s := range []step{
		{what: "nothing to do", ring: []byte{0}},
		{what: "the first key", set: 1, ring: []byte{0, 1}},
		{what: "too early", after: time.Second - 1, ring: []byte{0, 1}},
		{what: "the others know it", after: 1, ring: []byte{1, 0}},
		{what: "some still send with the former", after: time.Second - 1, ring: []byte{1, 0}},
		{what: "nobody does any more", after: 1, ring: []byte{1}},
		{what: "the next key", set: 2, ring: []byte{1, 2}},
		{what: "an older one, by a replay", set: 1, ring: []byte{1, 2}},
		{what: "another one before that is in use", after: time.Second - 1, set: 3, ring: []byte{1, 3}},
		{what: "its time counts", after: 1, ring: []byte{1, 3}},
		{what: "nobody is there", alone: true, ring: []byte{3, 1}},
		{what: "one more while the former is read", set: 4, ring: []byte{3, 1, 4}},
		{what: "the former ends with the next change", after: time.Second, ring: []byte{4, 3}},
		{what: "forgotten, alone or not", after: time.Second, alone: true, ring: []byte{4}},
	} {
		now = now.Add(s.after)
		if s.set != 0 {
			_, err = k.set(s.set, testKey(byte(s.set)))
		} else {
			err = k.advance(s.alone)
		}
		if err != nil {
			t.Fatal(err)
		}
		var ring []byte
		for _, key := range k.ring.GetKeys() {
			ring = append(ring, key[0])
		}
		if !bytes.Equal(ring, s.ring) {
			t.Fatalf("%s: keys %d, want %d", s.what, ring, s.ring)
		}
	}
}

// awaitRing waits until the only key is one of testKey.
func (n *node) awaitRing(key byte) {
	n.test.Helper()
	timeout := time.After(time.Minute)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if ring := n.keys.ring.GetKeys(); len(ring) == 1 && ring[0][0] == key {
			return
		}
		select {
		case <-look.C:
		case <-timeout:
			n.test.Fatalf("%s has %d keys", n.cfg.Site, len(n.keys.ring.GetKeys()))
		}
	}
}

// allAlive fails if a site was seen gone: a state is dated when it changes.
func (n *node) allAlive(since time.Time, sites ...string) {
	n.test.Helper()
	for _, site := range sites {
		if m, ok := n.member(site); !ok || m.State != Alive || m.Since.After(since) {
			n.test.Errorf("%s sees %s as %+v, want it alive since %v", n.cfg.Site, site, m, since)
		}
	}
}

// Three sites change keys, and never lose sight of each other. The fourth, which was banned
// and does not get the key, is out; so is a stranger who knows the federation's id alone.
func TestChangeOfKeys(t *testing.T) {
	t.Parallel()
	// Nobody misses a probe because the machine is busy: a round's answer has a second.
	calm := func(cfg *Config) { cfg.timing.probe, cfg.timing.ack = 2*time.Second, time.Second }
	a := open(t, "a", calm)
	b := open(t, "b", calm, a)
	c := open(t, "c", calm, a, b)
	banned := open(t, "banned", calm, a, b)
	for _, n := range []*node{a, b, c} {
		for _, site := range []string{"a", "b", "c", "banned"} {
			n.awaitState(site, Alive)
		}
	}
	begin := time.Now()
	for _, n := range []*node{a, b, c} {
		if err := n.SetKey(1, testKey(1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*node{a, b, c} {
		n.awaitRing(1)
		n.awaitState("banned", Dead)
	}
	banned.awaitState("a", Dead)
	for _, n := range []*node{a, b, c} {
		n.allAlive(begin, "a", "b", "c")
	}

	stranger := open(t, "stranger", nil, a, b, c)
	stranger.log.await(t, "nobody was found")
	again := open(t, "d", func(cfg *Config) { cfg.Key, cfg.Generation = testKey(1), 1 }, a)
	again.awaitState("c", Alive)
	c.awaitState("d", Alive)
	for _, n := range []*node{a, b, c} {
		if m, ok := n.member("stranger"); ok {
			t.Errorf("%s sees %+v", n.cfg.Site, m)
		}
	}
}

// A site that starts with a former key, or with none, is understood as soon as the state tells it the newest one.
func TestStartsWithAFormerKey(t *testing.T) {
	t.Parallel()
	newest := func(cfg *Config) { cfg.Key, cfg.Generation = testKey(9), 9 }
	a := open(t, "a", newest)
	b := open(t, "b", newest, a)
	former := open(t, "former", func(cfg *Config) { cfg.Key, cfg.Generation = testKey(1), 1 }, a, b)
	none := open(t, "none", nil, a, b)
	for _, n := range []*node{former, none} {
		n.log.await(t, "nobody was found")
		if err := n.SetKey(9, testKey(9)); err != nil {
			t.Fatal(err)
		}
		n.awaitState("a", Alive)
		b.awaitState(n.cfg.Site, Alive)
	}
	if err := a.SetKey(10, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("SetKey of no key: %v", err)
	}
}

// Whoever has the key cannot bring in sites that are no members.
func TestUnknownSitesAreIgnored(t *testing.T) {
	t.Parallel()
	members := func(cfg *Config) {
		cfg.Known = func(site string) bool { return site == "a" || site == "b" }
	}
	a := open(t, "a", members)
	liar := open(t, "b", nil, a)
	open(t, "sybil", nil, liar)
	a.awaitState("b", Alive)
	liar.awaitState("sybil", Alive)
	a.log.await(t, "no member of the federation")
	if m, ok := a.member("sybil"); ok {
		t.Errorf("a sees %+v", m)
	}
	if n := len(a.log.lines("no member of the federation")); n != 1 {
		t.Errorf("%d lines about it", n)
	}
	newcomer := open(t, "late", members, a) // it has not heard of its own admission
	if m := newcomer.awaitState("late", Alive); m.Addr != newcomer.Addr() {
		t.Errorf("late sees itself as %+v", m)
	}
}
