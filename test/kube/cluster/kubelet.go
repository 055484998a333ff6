package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// configureContainerd: what it keeps of containers is in the node's folder, so that
// it is found there, and no score is set that would need more rights.
func (n *Node) configureContainerd() error {
	conf := fmt.Sprintf(`version = 2
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[2]q
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "%[1]s/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %[3]q
    conf_dir = %[4]q
`, n.dir, pause, cniPlugins, n.c.path("cni"))
	path := filepath.Join(n.dir, "containerd.toml")
	program, err := exec.LookPath("containerd")
	if err != nil {
		return fmt.Errorf("find containerd: %w: run `bash .ci/kube install`", err)
	}
	n.Containerd = &Process{
		Name: n.Name + "-containerd", program: program, args: []string{"-c", path}, dir: n.dir, log: n.c.path(n.Name + "-containerd.log"),
		ready: func(ctx context.Context) error {
			return exec.CommandContext(ctx, "ctr", "-a", n.socket(), "version").Run()
		},
	}
	return os.WriteFile(path, []byte(conf), 0o600)
}

// PodPids is how many processes and threads a pod may have, as operators set it: a fork bomb
// would have all of this machine's else.
const PodPids = 256

// configureKubelet: nothing is evicted and nothing collected on this machine's
// account, and its packet filter stays as it is.
func (n *Node) configureKubelet() error {
	addr, err := testbed.FreeAddress()
	if err != nil {
		return err
	}
	health, err := testbed.FreeAddress()
	if err != nil {
		return err
	}
	host := n.c.net.bridge.String()
	server, err := n.c.ca.issue("kubelet", nil, lasting, host)
	if err != nil {
		return err
	}
	client, err := n.c.ca.issue("system:node:"+n.Name, []string{"system:nodes"}, lasting)
	if err != nil {
		return err
	}
	conf := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %[2]s/pki/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: %[1]s/kubelet.crt
tlsPrivateKeyFile: %[1]s/kubelet.key
address: %[3]s
port: %[4]s
healthzBindAddress: 127.0.0.1
healthzPort: %[5]s
containerRuntimeEndpoint: unix://%[1]s/sock
cgroupDriver: cgroupfs
cgroupRoot: /%[6]s
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
podPidsLimit: %[7]d
evictionHard: {memory.available: 1Mi, nodefs.available: 0%%, imagefs.available: 0%%, nodefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
podLogsDir: %[1]s/logs
volumePluginDir: %[1]s/plugins
serializeImagePulls: false
clusterDomain: cluster.local
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 2s
nodeLeaseDurationSeconds: 4
`, n.dir, n.c.Dir, host, port(addr), port(health), n.cgroup, PodPids)
	kubeconfig := filepath.Join(n.dir, "kubeconfig")
	if err = errors.Join(
		server.write(n.dir, "kubelet"),
		os.WriteFile(filepath.Join(n.dir, "kubelet.yaml"), []byte(conf), 0o600),
		n.c.kubeconfig(kubeconfig, &api.AuthInfo{ClientCertificateData: client.cert, ClientKeyData: client.key}, ""),
	); err != nil {
		return err
	}
	n.Kubelet, err = n.c.process(n.Name+"-kubelet", "kubelet",
		"--config="+filepath.Join(n.dir, "kubelet.yaml"), "--kubeconfig="+kubeconfig, "--hostname-override="+n.Name, "--node-ip="+host,
		"--root-dir="+filepath.Join(n.dir, "kubelet"), "--cert-dir="+n.dir)
	if err != nil {
		return err
	}
	n.Kubelet.alone = devicePlugins
	n.Kubelet.ready = func(ctx context.Context) error {
		return errors.Join(get(ctx, "http://"+health+"/healthz"), n.Kubelet.listensAt(pluginSocket))
	}
	return os.MkdirAll(devicePlugins, 0o750)
}

// Every kubelet listens for device plugins at this very path, whatever its own folder is:
// it removes what is there, and ends if another one takes the place in that moment.
const (
	devicePlugins = "/var/lib/kubelet/device-plugins"
	pluginSocket  = devicePlugins + "/kubelet.sock"
)

// get returns nil if a page is there.
func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
