package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// cniPlugins is where Debian has them.
const cniPlugins = "/usr/lib/cni"

// link is the network of a cluster's real nodes: a bridge, on which kubelets
// listen and pods are. The one service address that something listens at is the
// API server's: there is neither kube-proxy nor DNS.
type link struct {
	bridge string
	api    net.Listener
	to     string // the API server

	mu    sync.Mutex
	conns map[net.Conn]bool // what ends with it
	busy  sync.WaitGroup
	shut  bool
}

// connect makes the network of the first real node. REQUIRES: c.mu held.
func (c *Cluster) connect() error {
	if c.link != nil {
		return nil
	}
	// A device's name has 15 letters at most.
	l := &link{bridge: "csk" + c.name[len("cs-kube-"):], to: c.ports["api"], conns: map[net.Conn]bool{}}
	if err := os.WriteFile(c.path("bridge"), []byte(l.bridge), 0o600); err != nil { // for .ci/sweep
		return err
	}
	// An address of its own: else it is that of one of the pods' ends, and changes
	// under the other pods when that one goes.
	mac := fmt.Sprintf("02:%02x:%02x:%02x:%02x:01", rand.IntN(256), rand.IntN(256), rand.IntN(256), rand.IntN(256))
	for _, args := range [][]string{
		{"link", "add", l.bridge, "address", mac, "type", "bridge"},
		{"address", "add", c.net.bridge.String() + "/24", "dev", l.bridge},
		{"address", "add", c.net.api.String() + "/32", "dev", l.bridge},
		{"link", "set", l.bridge, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("make a bridge: ip %s: %w: %s", strings.Join(args, " "), err, out), l.remove())
		}
	}
	var err error
	if l.api, err = net.Listen("tcp", net.JoinHostPort(c.net.api.String(), "443")); err != nil {
		return errors.Join(fmt.Errorf("listen for pods: %w", err), l.remove())
	}
	l.busy.Go(l.serve)
	c.link = l
	return c.writeCNI()
}

// writeCNI writes how pods are connected to it.
func (c *Cluster) writeCNI() error {
	if err := os.Mkdir(c.path("cni"), 0o700); err != nil {
		return err
	}
	conf := fmt.Sprintf(`{"cniVersion": "0.4.0", "name": %q, "plugins": [{"type": "bridge", "bridge": %q, "isDefaultGateway": true,
  "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q, "gateway": %q}]]}}]}`,
		c.name, c.link.bridge, c.path("ipam"), c.net.pods, c.net.bridge)
	return os.WriteFile(c.path("cni", "10-bridge.conflist"), []byte(conf), 0o600)
}

// serve carries what pods send to the API server's service.
func (l *link) serve() {
	for {
		pod, err := l.api.Accept()
		if err != nil {
			return // closed
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.to)
		if err != nil {
			pod.Close()
			continue
		}
		if !l.keep(pod, server) {
			return
		}
		l.busy.Go(func() { l.carry(pod, server) })
		l.busy.Go(func() { l.carry(server, pod) })
	}
}

func (l *link) carry(from, to net.Conn) {
	_, _ = io.Copy(to, from) // either end may go
	from.Close()
	to.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
}

// keep remembers connections until they end; false: they are closed.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.shut {
			c.Close()
		}
		l.conns[c] = true
	}
	return !l.shut
}

// remove ends it; nil is none.
func (l *link) remove() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.shut = true
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	if l.api != nil {
		l.api.Close()
	}
	l.busy.Wait()
	if _, err := os.Stat("/sys/class/net/" + l.bridge); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if out, err := exec.Command("ip", "link", "delete", l.bridge).CombinedOutput(); err != nil {
		return fmt.Errorf("remove a bridge: %w: %s", err, out)
	}
	return nil
}

// forgetCNI removes the notes on pods that ended without their plugins: those on
// their networks' namespaces, which are in the cluster's folder.
func (c *Cluster) forgetCNI() {
	notes, _ := filepath.Glob("/var/lib/cni/results/*")
	for _, n := range notes {
		if b, err := os.ReadFile(n); err == nil && bytes.Contains(b, []byte(c.Dir+"/")) {
			_ = os.Remove(n) // another end of it may have
		}
	}
}
