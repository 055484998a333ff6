package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// The times at which a cluster notices what has become of nodes. A node is not
// ready after nodeGrace without a heartbeat, and its pods are deleted after
// toleration more; both are short, so that a test can wait for them.
const (
	nodeGrace  = "6s"
	toleration = "3"
)

// writePKI writes the certificates of the servers, and the key that signs the
// tokens of service accounts.
func (c *Cluster) writePKI() error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	c.ca = ca
	dir := c.path("pki")
	if err = os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	server, err := ca.issue("kube-apiserver", nil, lasting, "127.0.0.1", "localhost", c.net.api.String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return err
	}
	// The right of the API server to talk to kubelets.
	client, err := ca.issue("kube-apiserver-kubelet-client", []string{"system:masters"}, lasting)
	if err != nil {
		return err
	}
	tokens, err := newAuthority() // its key alone
	if err != nil {
		return err
	}
	key, err := keyPEM(tokens.key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "ca.crt"), ca.pem, 0o600),
		os.WriteFile(filepath.Join(dir, "sa.key"), key, 0o600),
		server.write(dir, "apiserver"), client.write(dir, "kubelet-client"),
	)
}

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.Dir}, elem...)...)
}

// process returns a component that logs into the cluster's folder.
func (c *Cluster) process(name, binary string, args ...string) (*Process, error) {
	program, err := Binary(binary)
	if err != nil {
		return nil, err
	}
	return &Process{
		Name: name, program: program, args: append(args, c.flags[binary]...), dir: c.Dir, log: c.path(name + ".log"),
	}, nil
}

// configure makes the four processes of the control plane.
func (c *Cluster) configure() error {
	for _, part := range []struct {
		to   **Process
		name string
		args []string
		// ready is what says so.
		ready func(context.Context) error
	}{
		{&c.ETCD, "etcd", c.etcdArgs(), c.dials("etcd")},
		{&c.APIServer, "kube-apiserver", c.apiArgs(), c.apiReady},
		{&c.Controllers, "kube-controller-manager", c.controllerArgs(), c.dials("controllers")},
		{&c.Scheduler, "kube-scheduler", c.clientArgs("scheduler"), c.dials("scheduler")},
	} {
		p, err := c.process(part.name, part.name, part.args...)
		if err != nil {
			return err
		}
		p.ready = part.ready
		*part.to = p
	}
	return nil
}

// etcdArgs: no fsync, since only processes are killed here, never the machine.
func (c *Cluster) etcdArgs() []string {
	client, peer := "http://"+c.ports["etcd"], "http://"+c.ports["etcd-peer"]
	return []string{
		"--data-dir=" + c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
	}
}

func (c *Cluster) apiArgs() []string {
	pki := func(name string) string { return c.path("pki", name) }
	return []string{
		"--etcd-servers=http://" + c.ports["etcd"], "--bind-address=127.0.0.1", "--secure-port=" + port(c.ports["api"]),
		"--advertise-address=" + c.net.bridge.String(), "--endpoint-reconciler-type=none", // its address is no pod's business
		"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"), "--client-ca-file=" + pki("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--anonymous-auth=false",
		"--service-account-key-file=" + pki("sa.key"), "--service-account-signing-key-file=" + pki("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=" + c.net.services,
		"--kubelet-certificate-authority=" + pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"), "--kubelet-client-key=" + pki("kubelet-client.key"),
		"--max-requests-inflight=1000", "--max-mutating-requests-inflight=500", "--allow-privileged",
		"--default-not-ready-toleration-seconds=" + toleration, "--default-unreachable-toleration-seconds=" + toleration,
	}
}

// clientArgs returns those of a component that only talks to the API server, as the
// administrator: whose rights are tested here are others'.
func (c *Cluster) clientArgs(what string) []string {
	return []string{
		"--kubeconfig=" + c.Kubeconfig(), "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + port(c.ports[what]),
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}
}

func (c *Cluster) controllerArgs() []string {
	return append(c.clientArgs("controllers"),
		"--service-account-private-key-file="+c.path("pki", "sa.key"), "--root-ca-file="+c.path("pki", "ca.crt"),
		"--flex-volume-plugin-dir="+c.path("plugins"), "--concurrent-job-syncs=20", "--resource-quota-sync-period=2s",
		"--node-monitor-period=1s", "--node-monitor-grace-period="+nodeGrace, "--node-startup-grace-period=20s",
	)
}

// dials is ready when something listens there.
func (c *Cluster) dials(what string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.ports[what])
		if err == nil {
			conn.Close()
		}
		return err
	}
}

func (c *Cluster) apiReady(ctx context.Context) error {
	b, err := c.client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err == nil && string(b) != "ok" {
		err = fmt.Errorf("/readyz says %q", b)
	}
	return err
}
