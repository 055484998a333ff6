package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

// place is where a broker listens for its peers, and what it tells them of that.
type place struct {
	peer, gossip int
	advertise    string // host; "" = the one where it listens
}

// home is where every broker starts.
var home = place{peer: peerPort, gossip: gossipPort}

const (
	// movedBy is how far ports of a broker that has moved from the first ones.
	movedBy = 10
	// nobody has this address.
	nobody = "10.77.0.200"
	// halfName means site-2's address and one that nobody has, bothName site-2's and
	// site-3's.
	halfName, bothName = "half.lab", "both.lab"
)

// nameHosts gives every host of the lab a name that all of them know.
func (f *fleet) nameHosts() error {
	text := "127.0.0.1 localhost\n"
	for i, h := range f.lab.Hosts {
		text += h.Addr + " " + hostName(i+1) + "\n"
	}
	second, third := f.lab.Hosts[1].Addr, f.lab.Hosts[2].Addr
	for _, line := range [][2]string{{nobody, halfName}, {second, halfName}, {third, bothName}, {second, bothName}} {
		text += line[0] + " " + line[1] + "\n"
	}
	path := filepath.Join(f.dir, "hosts")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write names of hosts: %w", err)
	}
	for _, h := range f.lab.Hosts {
		if err := h.Names(path); err != nil {
			return err
		}
	}
	return nil
}

func hostName(number int) string { return fmt.Sprintf("host-%d.lab", number) }

// spellings of a host's address; all mean the same.
func spellings(number int, addr string) []string {
	name := hostName(number)
	return []string{name, "::ffff:" + addr, strings.ToUpper(name), addr, name + ".", ""}
}

// restartAt restarts a broker at a place, after a while.
func (m *member) restartAt(ctx context.Context, at place, after time.Duration) error {
	if err := m.end(syscall.SIGTERM); err != nil {
		return err
	}
	m.place = at
	err := m.configure()
	return errors.Join(err, ignoreEnd(ctx, sleep(ctx, after)), m.launch())
}

// mistype restarts a broker with a wrong address in its configuration, which is
// put right after a while.
func (r *run) mistype(ctx context.Context, d time.Duration, m *member, host string) error {
	right := m.place
	wrong := right
	wrong.advertise = host
	err := m.restartAt(ctx, wrong, 0)
	if err == nil {
		err = ignoreEnd(ctx, sleep(ctx, d))
	}
	err = errors.Join(err, m.restartAt(ctx, right, 0))
	m.listening(ctx)
	return err
}

// move restarts brokers elsewhere; they stay there. All together they keep their
// gossip addresses: by these they find each other.
func (r *run) move(ctx context.Context, f plan.Fault, targets []*member) error {
	errs := make([]error, len(targets))
	for i, m := range targets { // first all go down
		errs[i] = m.end(syscall.SIGTERM)
	}
	for i, m := range targets {
		after := f.For
		if i > 0 {
			after = 0
		}
		errs[i] = errors.Join(errs[i], m.restartAt(ctx, m.next(f, r.number(m)), after))
	}
	for _, m := range targets {
		m.listening(ctx)
	}
	return errors.Join(errs...)
}

// next returns where a broker moves to.
func (m *member) next(f plan.Fault, number int) place {
	p := m.place
	if f.Kind == plan.Spelling {
		all := spellings(number, m.host.Addr)
		p.advertise = all[f.Number%len(all)]
		return p
	}
	p.peer = 2*peerPort + movedBy - p.peer
	if f.Kind == plan.Move {
		p.gossip = 2*gossipPort + movedBy - p.gossip
	}
	return p
}
