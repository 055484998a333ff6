//go:build zookeeper

package zk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// forkable opens members whose machines can be forked, and waits until they agree.
func forkable(t *testing.T, c *cluster, sites ...string) map[string]*coordtest.Forkable {
	t.Helper()
	machines := map[string]*coordtest.Forkable{}
	for _, site := range sites {
		machines[site] = c.openComparing(t, site)
	}
	await(t, "all agree", func() bool {
		for _, site := range sites {
			if len(c.logs[site].Compared().Same) != len(sites)-1 {
				return false
			}
		}
		return true
	})
	return machines
}

// openComparing opens a member that finds the others by its state, and keeps states.
func (c *cluster) openComparing(t *testing.T, site string) *coordtest.Forkable {
	t.Helper()
	m := coordtest.NewForkable()
	m.Peers = c.net.Addr
	cfg := c.config(site, m)
	cfg.Evidence = filepath.Join(c.dir, site+".diverged")
	l, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatalf("open %s: %v", site, err)
	}
	c.mu.Lock()
	c.logs[site] = l
	c.mu.Unlock()
	c.net.Join(site, l.Addr())
	return m
}

// await waits for a condition that other goroutines bring about.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.After(coordtest.Patience); !cond(); {
		select {
		case <-end:
			t.Fatalf("%s: not so", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stops waits until a member has stopped because its state differs, looks what it
// leaves behind, and takes that away.
func stops(t *testing.T, c *cluster, site string) {
	t.Helper()
	l := c.logs[site]
	select {
	case <-l.Failed():
	case <-time.After(coordtest.Patience):
		t.Fatalf("%s goes on: %+v", site, l.Compared())
	}
	if err := l.Err(); !errors.Is(err, compare.ErrDiffers) || !strings.Contains(err.Error(), remedyDiffers) {
		t.Fatalf("%s stopped for another reason: %v", site, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(l.cfg.Evidence, "*.snap"))
	if err != nil || len(files) != 2 {
		t.Errorf("kept %v, %v", files, err)
	}
	cfg := c.config(site, coordtest.NewForkable())
	cfg.Evidence = l.cfg.Evidence
	again, err := Open(patience(t), cfg)
	if err == nil {
		_ = again.Close()
	}
	if !errors.Is(err, compare.ErrDiffers) || !strings.Contains(err.Error(), "move that folder away") {
		t.Errorf("starts again: %v", err)
	}
	if err := os.RemoveAll(l.cfg.Evidence); err != nil {
		t.Fatal(err)
	}
}

// TestForkedMemberStops: a follower or a leader whose state two of three voters
// contradict stops, the others go on, and it comes back with the ensemble's state.
func TestForkedMemberStops(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(map[bool]string{false: "follower", true: "leader"}[leads], func(t *testing.T) {
			c := newCluster(t)
			machines := forkable(t, c, "a", "b", "c")
			wrong := c.leader(t).cfg.Site
			if !leads {
				wrong = map[string]string{"a": "b", "b": "c", "c": "a"}[wrong]
			}
			machines[wrong].Fork()
			stops(t, c, wrong)
			for site, l := range c.logs {
				if site == wrong {
					continue
				}
				if _, err := l.Sync(patience(t)); err != nil || l.Err() != nil {
					t.Errorf("%s does not go on: %v, %v", site, err, l.Err())
				}
			}
			c.openComparing(t, wrong)
			await(t, "the restarted one agrees", func() bool { return len(c.logs[wrong].Compared().Same) == 2 })
		})
	}
}

// TestOneOfTwoMembersDiffers: nobody knows which one is right; both tell and go on.
func TestOneOfTwoMembersDiffers(t *testing.T) {
	c := newCluster(t)
	forkable(t, c, "a", "b")["b"].Fork()
	for site, l := range c.logs {
		await(t, site+" tells", func() bool { c := l.Compared(); return len(c.Differ) == 1 && c.Unsure != "" })
		if _, err := l.Sync(patience(t)); err != nil || l.Err() != nil {
			t.Errorf("%s does not go on: %v, %v", site, err, l.Err())
		}
	}
}
