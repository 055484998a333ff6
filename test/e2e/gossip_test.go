package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestGarbageOnTheGossipPortDoesNoHarm sends what does not belong there to the
// gossip port of the leader and of another site, over TCP and UDP, and leaves
// connections half-open: a site's death is still seen by gossip, long before its
// lease ends, and its return too. No job is lost.
func TestGarbageOnTheGossipPortDoesNoHarm(t *testing.T) {
	fed := start(t, 3, 1)
	home, victim := fed.Sites[0], fed.Sites[2]
	bag := newGated(t)
	a := submit(t, home, bag.spec(4))
	awaitRunning(t, home, a.ID, 3)
	before, err := home.PID()
	must(t, err)
	status, err := home.Status(within(t))
	must(t, err)

	junk := garbage()
	maps.Copy(junk, gossipGarbage("cloudshare/"+strings.ReplaceAll(status.Federation, "-", "")))
	for _, s := range fed.Sites[:2] {
		address, err := s.GossipAddress()
		must(t, err)
		halfOpen(t, address, 100)
		for name, data := range junk {
			if err := throw(address, data); err != nil {
				t.Errorf("%s at %s over TCP: %v", name, s.Name, err)
			}
			if err := throwPackets(address, data); err != nil {
				t.Errorf("%s at %s over UDP: %v", name, s.Name, err)
			}
		}
	}

	if after, err := home.PID(); err != nil || after != before || !home.Alive() {
		t.Fatalf("broker %d is now %d, %v", before, after, err)
	}
	for _, s := range fed.Sites {
		for _, other := range fed.Sites {
			if info, err := s.Info(within(t), other.Name); err != nil || info.State != "alive" {
				t.Errorf("%s sees %s as %q, %v", s.Name, other.Name, info.State, err)
			}
		}
	}
	if said := strings.Count(home.LogTail(1000), "gossip: "); said == 0 || said > 20 {
		t.Errorf("%s wrote %d lines about it, want a few", home.Name, said)
	}
	deathIsHinted(t, fed, home, victim)
	bag.open(t)
	awaitEnd(t, home, a.ID)
	bag.noOverlap(t)
	agree(t, fed)
}

// deathIsHinted kills a site and waits until it is suspected, which is gossip's
// word; the lease says "lost" seconds later. On a busy machine the lease can
// come first: then once more. In the end the site is back.
func deathIsHinted(t *testing.T, fed *testbed.Federation, at, victim *testbed.Site) {
	t.Helper()
	for range 3 {
		must(t, victim.Kill())
		state := ""
		await(t, victim.Name+" missed", func() error {
			info, err := at.Info(t.Context(), victim.Name)
			if state = info.State; err == nil && state != "suspect" && state != "lost" {
				err = errors.New("it is " + state)
			}
			return err
		})
		must(t, fed.Restart(within(t), victim))
		await(t, victim.Name+" back", func() error {
			info, err := at.Info(t.Context(), victim.Name)
			if err == nil && info.State != "alive" {
				err = errors.New("it is " + info.State)
			}
			return err
		})
		if state == "suspect" {
			return
		}
	}
	t.Errorf("%s was given up three times before gossip missed it", victim.Name)
}

// gossipGarbage looks like gossip of this federation for a while.
func gossipGarbage(label string) map[string][]byte {
	r := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 4<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	head := append([]byte{244, byte(len(label))}, label...)
	// A stream's frame: encrypted, length, version.
	frame := func(length uint32, version byte) []byte {
		return append(binary.BigEndian.AppendUint32(append(append([]byte{}, head...), 10), length), version)
	}
	labelled := func(data ...byte) []byte { return append(append([]byte{}, head...), data...) }
	return map[string][]byte{
		"label alone":         head,
		"label, cut":          head[:len(head)/2],
		"label, wrong length": append([]byte{244, 255}, label...),
		"another label":       append([]byte{244, 5}, "other"+string(noise[:500])...),
		"label, noise":        labelled(noise...),
		"oversized frame":     append(frame(1<<32-1, 1), noise...),
		"frame, wrong seal":   append(frame(1000, 1), noise...),
		"frame, old version":  append(frame(1000, 0), noise...),
		"frame, empty":        frame(0, 1),
		"packet, wrong seal":  labelled(append([]byte{1}, noise[:1200]...)...),
		"packet, old version": labelled(append([]byte{0}, noise[:1200]...)...),
		"unsealed ping":       labelled(append([]byte{0}, noise[:40]...)...),
		"unsealed compound":   labelled(append([]byte{7, 255}, noise[:600]...)...),
		"unsealed compressed": labelled(append([]byte{9}, noise[:600]...)...),
	}
}

// throwPackets sends bytes as one packet each of many sizes; no answer is expected.
func throwPackets(address string, data []byte) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, size := range []int{0, 1, 2, 17, 100, 1400, 1472, 9000, 65507} {
		_, _ = conn.Write(data[:min(size, len(data))]) // nobody has to take it
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		return err
	}
	if n, err := conn.Read(make([]byte, 64<<10)); err == nil {
		return fmt.Errorf("the port answers garbage with %d bytes", n)
	}
	return nil
}

// halfOpen leaves connections that say little or nothing until the test ends.
func halfOpen(t *testing.T, address string, n int) {
	t.Helper()
	for i := range n {
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write([]byte{244, 43, 'c', 'l'}[:i%5]) // the broker may have hung up
	}
}
