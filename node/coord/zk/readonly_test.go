//go:build zookeeper

package zk

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// TestReadOnlyServer: a server that lost its quorum and serves reads only is no
// ensemble to a member: it neither opens there nor stays.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	three, err := ensemble.New(ensemble.Config{
		Dir: t.TempDir(), Servers: 3, Tick: 100 * time.Millisecond, HeapMiB: 64,
		Flags: append(slices.Clone(ensemble.Brief), "-Dreadonlymode.enabled=true"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer three.Stop()
	if err := three.Start(patience(t)); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	c.place.Servers = strings.Split(three.Addrs(), ",")
	a := c.open(t, "a")[0]
	for _, s := range three.Servers()[1:] {
		s.Kill()
	}
	for ctx := patience(t); three.Servers()[0].Mode() != "read-only"; {
		if ctx.Err() != nil {
			t.Fatalf("the server is %q", three.Servers()[0].Mode())
		}
		<-time.After(50 * time.Millisecond)
	}
	cfg := c.config("b", coordtest.NewMachine())
	cfg.timing = quick()
	cfg.timing.open = 2 * time.Second
	_, err = Open(patience(t), cfg)
	says(t, err, ErrUnreachable, three.Servers()[0].Addr)
	if st := a.l.Status(); a.l.c.up.Load() || st.Lead != "" {
		t.Errorf("connected: %v, %+v", a.l.c.up.Load(), st)
	}
	if err := three.Servers()[1].Start(); err != nil {
		t.Fatal(err)
	}
	if err := a.say(patience(t)); err != nil {
		t.Error(err)
	}
}
