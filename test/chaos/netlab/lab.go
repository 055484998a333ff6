// Package netlab is a network of hosts on this machine whose links can be cut,
// in one direction, in both, or for one port, and can be long: with a delay, jitter,
// loss and a bandwidth for each direction between two hosts, drawn from a seed.
//
// Every host is a network and a mount namespace of its own, held by a thread of
// this process and by the processes started in it: when those are gone, so is
// the host, and nothing can be left behind. Its only link is a tun device, and
// the switch between the hosts is a goroutine here, which drops what the cuts
// name and holds the rest for as long as its link takes. So no bridge, no packet
// filter, no queueing discipline and no tool is needed, only the right to make
// namespaces (root) and /dev/net/tun.
package netlab

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// subnet of all hosts; host n is subnet.n.
var subnet = [3]byte{10, 77, 0}

// maxHosts fit into the subnet.
const maxHosts = 250

// ErrNotRoot says that namespaces and tun devices need root.
var ErrNotRoot = errors.New("making network namespaces needs root: run it with sudo")

// Lab is a set of hosts and the switch between them.
type Lab struct {
	Cuts
	Links

	Hosts []*Host // host n is Hosts[n-1]
	ports sync.WaitGroup
}

// New makes n hosts that reach each other.
func New(n int) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, ErrNotRoot
	}
	if n < 1 || n > maxHosts {
		return nil, fmt.Errorf("make lab: %d hosts, must be 1 to %d", n, maxHosts)
	}
	l := &Lab{Links: Links{began: time.Now(), shut: make(chan struct{})}}
	for i := range n {
		h, err := newHost(i + 1)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make host %d: %w", i+1, err), l.Close())
		}
		l.Hosts = append(l.Hosts, h)
	}
	for _, h := range l.Hosts {
		l.ports.Go(func() { l.forward(h) })
	}
	return l, nil
}

// forward carries what a host sends until its device is closed.
func (l *Lab) forward(h *Host) {
	buf := make([]byte, 64<<10)
	for {
		n, err := h.tun.Read(buf)
		if err != nil {
			return
		}
		p, ok := parse(buf[:n], len(l.Hosts))
		if !ok || l.drops(p) {
			continue
		}
		l.carry(way{p.from, p.to}, buf[:n], l.Hosts[p.to-1].receive)
	}
}

// Close takes the links away and lets go of the hosts. Processes in them must
// have ended.
func (l *Lab) Close() error {
	var errs []error
	for _, h := range l.Hosts {
		errs = append(errs, h.close())
	}
	l.ports.Wait()
	l.close()
	return errors.Join(errs...)
}
