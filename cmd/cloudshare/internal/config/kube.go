package config

import (
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/executor/kube"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// KubeConfig is of jobs with an image on a Kubernetes cluster.
type KubeConfig struct {
	Cluster        string        `koanf:"cluster" doc:"a kubeconfig's path, or in-cluster for the cluster that the broker is a pod of; empty = no Kubernetes"`
	Context        string        `koanf:"context" doc:"the kubeconfig's context; empty = its current one"`
	Namespace      string        `koanf:"namespace" doc:"where tasks run, as Jobs; empty = that of the service account or of the context"`
	NodeSelector   []string      `koanf:"node_selector" doc:"labels that nodes must have, as KEY=VALUE; empty = all nodes"`
	NodeLabels     []string      `koanf:"node_labels" doc:"keys of nodes' labels that jobs may select by, such as topology.kubernetes.io/zone; for kinds of nodes, not for single ones"`
	Tolerations    []string      `koanf:"tolerations" doc:"taints that do not keep tasks off a node, as KEY, KEY:EFFECT or KEY=VALUE:EFFECT"`
	Threshold      int           `koanf:"threshold" doc:"percent of each node that stay free of requests, since others use it, too; 0 = none"`
	Dedicated      bool          `koanf:"dedicated" doc:"nobody else's pods are on the nodes: they are not looked at, which spares the right to list them"`
	ServiceAccount string        `koanf:"service_account" doc:"of tasks, without its token; empty = the namespace's default"`
	PriorityClass  string        `koanf:"priority_class" doc:"of tasks; empty = the cluster's default"`
	PullSecrets    []string      `koanf:"pull_secrets" doc:"names of the Secrets with credentials for registries"`
	Images         []string      `koanf:"images" doc:"images that may run, by patterns of names with their registry, such as docker.io/library/*; empty = all"`
	Pull           string        `koanf:"pull" doc:"fetch images: Always, IfNotPresent or Never; empty = Kubernetes' own default"`
	User           string        `koanf:"user" doc:"UID or UID:GID of tasks; empty = the image's own"`
	ReadOnly       bool          `koanf:"read_only" doc:"images' files cannot be changed; /tmp is a volume"`
	PrivateDir     bool          `koanf:"private_dir" doc:"tasks begin in their private directory instead of their image's working directory"`
	Scratch        string        `koanf:"scratch" doc:"of a task's private directory, such as 1Gi; 0 = no limit"`
	Mounts         []string      `koanf:"mounts" doc:"folders of the nodes for every task, as /from:/to or /from:/to:ro"`
	GPU            string        `koanf:"gpu" doc:"the nodes' resource that counts as gpu"`
	StartLimit     time.Duration `koanf:"start_limit" doc:"how long a task may take until it runs: to find room, to fetch its image"`
	ControlLag     time.Duration `koanf:"control_lag" doc:"how long Kubernetes' controllers may take to make the pod of another site's task; later it is handed back"`
	NodeLag        time.Duration `koanf:"node_lag" doc:"how late at most a kubelet ends what is over its deadline, steps of its clock included"`
	JobTTL         time.Duration `koanf:"job_ttl" doc:"how long Kubernetes keeps the Job of an ended task whose broker stays away"`
	Watchdog       KubeWatchdog  `koanf:"watchdog"`
}

// KubeWatchdog is of the first process of other sites' tasks, by which the lease is
// their fence, and of tasks with files, which it carries. All keys or none.
type KubeWatchdog struct {
	Image  string `koanf:"image" doc:"of this program: a watchdog from it begins and ends other sites' tasks, which need no timeout then, and carries files of all tasks; empty = none"`
	Listen string `koanf:"listen" doc:"host:port where watchdogs in pods ask the broker how long their tasks may live, and fetch and send files"`
	URL    string `koanf:"url" doc:"http://HOST:PORT by which pods reach that"`
}

func defaultKube() KubeConfig {
	return KubeConfig{
		NodeSelector: []string{}, NodeLabels: []string{}, Tolerations: []string{}, PullSecrets: []string{},
		Images: []string{}, Mounts: []string{},
		Threshold: 30, Scratch: "0", GPU: "nvidia.com/gpu",
		StartLimit: 5 * time.Minute, ControlLag: time.Minute, NodeLag: 15 * time.Second, JobTTL: 24 * time.Hour,
	}
}

// checkKube checks what can be known without the cluster.
func (c Config) checkKube() error {
	k := c.Kube
	if k.Cluster == "" {
		return nil
	}
	if _, err := jobspec.ParseMemory(k.Scratch); err != nil {
		return cli.Usage("kube.scratch %q: %w; 0 for no limit", k.Scratch, err)
	}
	if k.Threshold < 0 || k.Threshold > 100 {
		return cli.Usage("kube.threshold %d: must be 0 to 100", k.Threshold)
	}
	if err := c.ForKube("").Validate(); err != nil {
		return cli.Usage("kube.%s", strings.TrimPrefix(err.Error(), "kube: "))
	}
	return nil
}

// ForKube returns what the Kubernetes handler is told.
func (c Config) ForKube(federation string) kube.Config {
	k := c.Kube
	scratch, _ := jobspec.ParseMemory(k.Scratch) // checkKube has seen it
	out := kube.Config{
		Keeping: c.keeping("kube"), Cluster: k.Cluster, Context: k.Context, Namespace: k.Namespace, Federation: federation,
		Threshold: k.Threshold, Dedicated: k.Dedicated, ServiceAccount: k.ServiceAccount,
		PriorityClass: k.PriorityClass,
		PullSecrets:   k.PullSecrets, Images: k.Images, PullPolicy: k.Pull, User: k.User, ReadOnly: k.ReadOnly,
		PrivateDir: k.PrivateDir, ScratchMiB: scratch, Mounts: k.Mounts, GPUResource: k.GPU,
		StartLimit: k.StartLimit, ControlLag: k.ControlLag, NodeLag: k.NodeLag, JobTTL: k.JobTTL,
		NodeSelector: k.NodeSelector, NodeLabels: k.NodeLabels, Tolerations: k.Tolerations,
		Watchdog: kube.Watchdog(k.Watchdog), Foreign: c.foreignNetwork(),
	}
	if k.Threshold == 0 {
		out.Threshold = -1
	}
	return out
}
