package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/test/container/engines"
)

// Image is on every real node: a static busybox and nothing else, see
// engines.Files. Its tag is not "latest", which would be fetched each time.
const Image = "cloudshare.test/busybox:1"

// pause is what holds the namespaces of a pod.
const pause = "cloudshare.test/pause:1"

// ErrNotRoot says that a real node needs root.
var ErrNotRoot = errors.New("a kubelet and a containerd need root")

// Node is a machine with a real kubelet and a real containerd: pods run there. All
// nodes of a cluster share this machine's cores, memory and kernel.
type Node struct {
	Name                string
	Kubelet, Containerd *Process

	dir    string
	cgroup string // below each of the machine's hierarchies
	c      *Cluster
	once   sync.Once
}

// AddNode adds a node with the image on it, and waits until it is ready.
func (c *Cluster) AddNode(ctx context.Context, name string) (*Node, error) {
	if os.Getuid() != 0 {
		return nil, ErrNotRoot
	}
	n := &Node{Name: name, c: c, dir: c.path(name), cgroup: filepath.Join(c.name, name)}
	if err := n.prepare(); err != nil {
		return nil, fmt.Errorf("prepare node %s: %w", name, err)
	}
	if err := n.Containerd.Start(ctx); err != nil {
		return nil, err
	}
	if err := n.importBase(ctx); err != nil {
		return nil, err
	}
	if err := n.Kubelet.Start(ctx); err != nil {
		return nil, err
	}
	if err := c.AwaitNodes(ctx, map[string]bool{name: true}); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, n.Kubelet.Log(30))
	}
	return n, nil
}

// prepare makes what the node's processes need; from then on Close ends it.
func (n *Node) prepare() error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	if err := n.c.connect(); err != nil {
		return err
	}
	n.c.nodes = append(n.c.nodes, n)
	return errors.Join(n.c.saveTunables(), os.Mkdir(n.dir, 0o700), n.makeCgroups(), n.configureContainerd(),
		n.configureKubelet())
}

// importBase puts the busybox there, and what holds a pod.
func (n *Node) importBase(ctx context.Context) error {
	layer, err := engines.Files()
	if err != nil {
		return err
	}
	return n.load(ctx, image{name: Image, layer: layer}, image{name: pause, layer: layer, entrypoint: []string{"/bin/sleep", "infinity"}})
}

// ImportProgram makes an image FROM scratch of one static program, /app, which its
// containers run by themselves.
func (n *Node) ImportProgram(ctx context.Context, name, path string) error {
	i, err := program(name, path)
	if err != nil {
		return err
	}
	return n.load(ctx, i)
}

func (n *Node) load(ctx context.Context, images ...image) error {
	b, err := pack(images...)
	if err != nil {
		return fmt.Errorf("make an image: %w", err)
	}
	path := filepath.Join(n.dir, "images.tar")
	if err = os.WriteFile(path, b, 0o600); err != nil {
		return err
	}
	return errors.Join(n.Import(ctx, path), os.Remove(path))
}

// Import puts the images of a file there, as `make image` and `docker save` write it.
func (n *Node) Import(ctx context.Context, path string) error {
	out, err := exec.CommandContext(ctx, "ctr", "-a", n.socket(), "-n", "k8s.io", "images", "import", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import %s: %w: %s", path, err, out)
	}
	return nil
}

func (n *Node) socket() string { return filepath.Join(n.dir, "sock") }

// Vanish ends the machine: kubelet, containerd and pods, all at once. Its object
// stays in the API, as that of a machine without power does. It is idempotent.
func (n *Node) Vanish() {
	n.once.Do(func() {
		for _, p := range []*Process{n.Kubelet, n.Containerd} {
			if p != nil {
				p.Kill()
			}
		}
		n.killPods()
		engines.KillBelow(n.dir) // shims
		n.killPods()             // what a shim has just started
		n.forgetShims()
		engines.UnmountBelow(n.dir)
		n.removeCgroups()
		n.c.forgetCNI()
	})
}

// forgetShims removes the sockets of killed shims: they are nowhere in its folder.
func (n *Node) forgetShims() {
	files, _ := filepath.Glob(filepath.Join(n.dir, "state", "io.containerd.runtime.v2.task", "k8s.io", "*", "address"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			_ = os.Remove(strings.TrimPrefix(string(b), "unix://")) // an orderly end has
		}
	}
}

// RemoveNodes takes nodes, real or fake, out of the cluster, with all pods on them:
// for tests that share a cluster. Names that it does not know are nothing to do.
func (c *Cluster) RemoveNodes(ctx context.Context, names ...string) error {
	var errs []error
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, name := range names {
		if n := c.takeNode(name); n != nil {
			n.Vanish()
			errs = append(errs, os.RemoveAll(n.dir))
		}
		if err := c.client.CoreV1().Nodes().Delete(ctx, name, now); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove node %s: %w", name, err))
		}
		pods, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		if err != nil {
			errs = append(errs, fmt.Errorf("look for pods of node %s: %w", name, err))
			continue
		}
		for _, p := range pods.Items {
			if err = c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, now); err != nil &&
				!apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("remove pod %s: %w", p.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// takeNode forgets a real node and returns it; nil is none of that name.
func (c *Cluster) takeNode(name string) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.nodes {
		if n.Name == name {
			c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
			return n
		}
	}
	return nil
}

// Runs returns the command lines of what runs in the node's pods: what is there
// although Kubernetes may say otherwise.
func (n *Node) Runs() []string {
	var all []string
	for _, pid := range n.pids() {
		b, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if line := strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " ")); err == nil && line != "" && line != "/bin/sleep infinity" {
			all = append(all, line)
		}
	}
	return all
}
