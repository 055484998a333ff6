package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// Cluster is a control plane with its nodes. Its methods may be called by several
// goroutines, as long as each name is used by one.
type Cluster struct {
	// Dir holds everything: data, certificates, logs.
	Dir string
	// The control plane; all run from Start until Close, unless a test ends one.
	ETCD, APIServer, Controllers, Scheduler *Process

	name  string // of the folder, of the bridge, of cgroups
	flags map[string][]string
	ca    *authority
	net   subnets
	ports map[string]string // loopback addresses by what listens there

	admin  *rest.Config
	client *kubernetes.Clientset

	mu    sync.Mutex
	kwok  *Process // nil until the first fake nodes
	fakes int
	nodes []*Node
	link  *link // nil until the first real node
}

// Option of a cluster.
type Option func(*Cluster)

// Flags are added to those of a component (kube-apiserver, …); the last one counts.
func Flags(component string, flags ...string) Option {
	return func(c *Cluster) { c.flags[component] = append(c.flags[component], flags...) }
}

// Start starts a control plane without nodes; it ends with the test, which fails
// with the components' last words if it cannot be started.
func Start(t testing.TB, options ...Option) *Cluster {
	t.Helper()
	c, err := New(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs(15))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// New starts one that its caller ends by Close.
func New(ctx context.Context, options ...Option) (*Cluster, error) {
	dir, err := os.MkdirTemp("/tmp", "cs-kube-") // the paths of sockets must be short
	if err != nil {
		return nil, err
	}
	// Who owns it, for `.ci/kube end`: what a test still uses stays.
	if err = os.WriteFile(filepath.Join(dir, "owner"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return nil, err
	}
	c := &Cluster{
		Dir: dir, name: filepath.Base(dir), flags: map[string][]string{}, ports: map[string]string{},
		net: newSubnets(),
	}
	for _, o := range options {
		o(c)
	}
	if err = c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	for _, step := range []func() error{c.choosePorts, c.writePKI, c.writeAdmin, c.configure} {
		if err := step(); err != nil {
			return err
		}
	}
	// The API server waits for etcd by itself. The others wait for it, too, but end
	// when that takes long.
	plane := c.plane()
	for _, some := range [][]*Process{plane[:2], plane[2:]} {
		if err := startAll(ctx, some); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return testbed.Await(ctx, "the default service account", func() error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, metav1.NamespaceDefault,
			metav1.GetOptions{})
		return err
	})
}

func startAll(ctx context.Context, some []*Process) error {
	for _, p := range some {
		if err := p.launch(); err != nil {
			return err
		}
	}
	for _, p := range some {
		if err := p.Await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// plane returns the control plane in the order of its starts.
func (c *Cluster) plane() []*Process {
	return []*Process{c.ETCD, c.APIServer, c.Controllers, c.Scheduler}
}

// choosePorts takes one for each listener, of a range in which no connection of
// others takes one by itself: a component that is killed finds its own again.
func (c *Cluster) choosePorts() error {
	taken := map[string]bool{}
	for _, what := range []string{"etcd", "etcd-peer", "api", "controllers", "scheduler"} {
		addr, err := freeAddress(taken)
		if err != nil {
			return err
		}
		c.ports[what] = addr
	}
	return nil
}

func freeAddress(taken map[string]bool) (string, error) {
	for {
		addr, err := testbed.FreeAddress()
		if err != nil {
			return "", err
		}
		if !taken[addr] {
			taken[addr] = true
			return addr, nil
		}
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// subnets of a cluster: two that run at once should not share them.
type subnets struct {
	services string // of 254 addresses
	api      net.IP // the service "kubernetes"
	pods     string // of 254 addresses, and the bridge's
	bridge   net.IP // where kubelets listen
}

func newSubnets() subnets {
	a, b := byte(100+rand.IntN(50)), byte(rand.IntN(256))
	return subnets{
		services: fmt.Sprintf("10.%d.%d.0/24", a, b), api: net.IPv4(10, a, b, 1),
		pods: fmt.Sprintf("10.%d.%d.0/24", a+50, b), bridge: net.IPv4(10, a+50, b, 1),
	}
}

// Logs returns the last n lines of every component.
func (c *Cluster) Logs(n int) string {
	var b strings.Builder
	for _, p := range c.processes() {
		b.WriteString(p.Log(n))
	}
	return b.String()
}

// processes are all components, in the order in which they end.
func (c *Cluster) processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*Process
	for _, n := range c.nodes {
		all = append(all, n.Kubelet, n.Containerd)
	}
	for _, p := range []*Process{c.kwok, c.Scheduler, c.Controllers, c.APIServer, c.ETCD} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Close ends everything and removes it. It is idempotent.
func (c *Cluster) Close() error {
	c.mu.Lock()
	nodes, l := c.nodes, c.link
	c.mu.Unlock()
	for _, n := range nodes {
		n.Vanish()
	}
	for _, p := range c.processes() {
		p.Kill() // nothing in there is worth an orderly end
	}
	if c.admin != nil {
		closeIdle(c.admin)
	}
	return errors.Join(l.remove(), c.restoreTunables(), os.RemoveAll(c.Dir))
}
