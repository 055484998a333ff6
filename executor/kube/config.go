package kube

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// InCluster is the cluster that the broker itself runs in, with the service
// account of its pod.
const InCluster = "in-cluster"

// Config of a Kubernetes handler. The zero value of a field means its default.
type Config struct {
	attempts.Keeping
	// Cluster is InCluster or the path of a kubeconfig, with the context to use;
	// "" = its current one.
	Cluster, Context string
	// Namespace of the Jobs; "" = that of the service account or of the context.
	Namespace string
	// Federation is a label of every Job, for people.
	Federation string

	// NodeSelector are labels that nodes must have to be used, as KEY=VALUE.
	NodeSelector []string
	// NodeLabels are the keys of nodes' labels that jobs may select by: what they tell
	// apart are kinds of nodes, not single ones.
	NodeLabels []string
	// Tolerations are of taints that do not keep tasks off, as KEY, KEY:EFFECT or
	// KEY=VALUE:EFFECT.
	Tolerations []string
	// Threshold is how much of each node stays free of requests, in percent: the
	// paper's 30. -1 = none.
	Threshold int
	// Dedicated: nobody else's pods are on the nodes. They are not looked at, so
	// the right to list the pods of all namespaces is not needed.
	Dedicated bool

	ServiceAccount string   // of tasks, without its token; "" = the namespace's default
	PriorityClass  string   // "" = the cluster's default
	PullSecrets    []string // names of Secrets in Namespace
	Images         attempts.Images
	PullPolicy     string // Always, IfNotPresent or Never; "" = Kubernetes' own default
	User           string // "" = the image's own; else UID or UID:GID
	ReadOnly       bool   // the image's files cannot be changed; /tmp is a volume
	// PrivateDir: tasks begin in their private directory, not in the image's.
	PrivateDir bool
	ScratchMiB int64 // of the private directory; 0 = no limit
	// Mounts are folders of the nodes for every task, as FROM:TO or FROM:TO:ro.
	Mounts      []string
	GPUResource string // "" = nvidia.com/gpu

	// Foreign is the network of other sites' tasks whose jobs ask for one. It is a label
	// of pods: NetworkPolicies of the namespace hold them to it, which this handler has no
	// right to make.
	Foreign executor.Network

	// StartLimit is how long a task may take until it runs; 0 = 5 m.
	StartLimit time.Duration
	// PlaceWait is how long Start waits for a node to take the pod; 0 = 2 s.
	PlaceWait time.Duration
	// CallTimeout bounds each call of the API; 0 = 10 s.
	CallTimeout time.Duration
	// ControlLag is how long after its start another site's task may still be let go:
	// Kubernetes' controllers have looked at its Job by then, and it is two calls' time
	// at least. NodeLag is how late a kubelet ends what is over its
	// deadline, steps of its clock included; 0 = 1 m and 15 s. See Handler.Bound.
	ControlLag, NodeLag time.Duration
	// JobTTL is how long Kubernetes keeps the Job of a task that ended while its
	// broker stays away; 0 = 24 h.
	JobTTL time.Duration
	// Watchdog of other sites' tasks; none: they are held to a bound, see Handler.Bound.
	Watchdog Watchdog
	// LogWait is how long a node's kubelet is asked for the output of an ended
	// task; 0 = 10 s.
	LogWait time.Duration
}

// maxList bounds each list of a configuration.
const maxList = 100

// Validate names the first thing that cannot work. It asks no cluster.
func (c Config) Validate() error {
	if err := errors.Join(c.Keeping.Validate(), c.Images.Validate()); err != nil {
		return fmt.Errorf("kube: %w", err)
	}
	switch {
	case c.Cluster == "":
		return fmt.Errorf("kube: cluster is empty: name a kubeconfig, or %s", InCluster)
	case c.Cluster == InCluster && c.Context != "":
		return fmt.Errorf("kube: context %q: only a kubeconfig has contexts", c.Context)
	case c.Threshold < -1 || c.Threshold > 100:
		return fmt.Errorf("kube: threshold is %d%%: must be 1 to 100, or -1 for none", c.Threshold)
	case c.ScratchMiB < 0:
		return fmt.Errorf("kube: scratch is %d MiB: it cannot be negative", c.ScratchMiB)
	case len(c.NodeSelector) > maxList || len(c.Tolerations) > maxList || len(c.PullSecrets) > maxList ||
		len(c.Mounts) > maxList:
		return fmt.Errorf("kube: node selector, tolerations, pull secrets and mounts have at most %d entries each", maxList)
	case !slices.Contains([]corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever},
		corev1.PullPolicy(c.PullPolicy)):
		return fmt.Errorf("kube: pull %q: must be %s, %s or %s", c.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	}
	for _, d := range []struct {
		name string
		is   time.Duration
	}{
		{"start limit", c.StartLimit},
		{"place wait", c.PlaceWait},
		{"call timeout", c.CallTimeout},
		{"control lag", c.ControlLag},
		{"node lag", c.NodeLag},
		{"Job TTL", c.JobTTL},
		{"log wait", c.LogWait},
	} {
		if d.is < 0 || d.is > 365*24*time.Hour {
			return fmt.Errorf("kube: %s is %s: must be 0 for the default, or up to a year", d.name, d.is)
		}
	}
	if lag, call := c.withDefaults().ControlLag, c.withDefaults().CallTimeout; lag < 2*call {
		return fmt.Errorf("kube: control lag %s is shorter than call timeout %s twice: a Job may come to be, and its pod be let go, that late", lag, call)
	}
	return errors.Join(c.validateNames(), c.validatePods(), c.Watchdog.validate())
}

// validateNames checks what the API server would refuse each Job for.
func (c Config) validateNames() error {
	names := map[string][]string{
		"namespace": {c.Namespace}, "service account": {c.ServiceAccount}, "priority class": {c.PriorityClass}, "pull secret": c.PullSecrets,
	}
	for what, list := range names {
		for _, name := range list {
			if name == "" && what != "pull secret" {
				continue
			}
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
				return fmt.Errorf("kube: %s %q: %s", what, name, wrong[0])
			}
		}
	}
	if wrong := validation.IsQualifiedName(c.withDefaults().GPUResource); len(wrong) > 0 {
		return fmt.Errorf("kube: gpu %q: %s", c.GPUResource, wrong[0])
	}
	return nil
}

func (c Config) validatePods() error {
	if _, _, err := c.mounts(); err != nil {
		return err
	}
	_, err := c.user()
	_, serr := c.selector()
	_, terr := c.tolerations()
	return errors.Join(err, serr, terr, c.validateNodeLabels())
}

// selector reads NodeSelector.
func (c Config) selector() (map[string]string, error) {
	out := make(map[string]string, len(c.NodeSelector))
	for _, text := range c.NodeSelector {
		k, v, ok := strings.Cut(text, "=")
		if wrong := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...); !ok || len(wrong) > 0 {
			return nil, fmt.Errorf("kube: node_selector %q: must be KEY=VALUE, a label of nodes", text)
		}
		out[k] = v
	}
	return out, nil
}

// tolerations reads Tolerations.
func (c Config) tolerations() (out []corev1.Toleration, _ error) {
	for _, text := range c.Tolerations {
		rest, effect, bound := strings.Cut(text, ":")
		key, value, valued := strings.Cut(rest, "=")
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
		if valued {
			t.Operator, t.Value = corev1.TolerationOpEqual, value
		}
		wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if len(wrong) > 0 || bound && t.Effect != corev1.TaintEffectNoSchedule &&
			t.Effect != corev1.TaintEffectNoExecute {
			return nil, fmt.Errorf("kube: tolerations %q: must be KEY, KEY:EFFECT or KEY=VALUE:EFFECT, with the effect NoSchedule or NoExecute", text)
		}
		out = append(out, t)
	}
	return out, nil
}

// mounts reads Mounts.
func (c Config) mounts() ([]corev1.Volume, []corev1.VolumeMount, error) {
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	for i, text := range c.Mounts {
		part := strings.Split(text, ":")
		ro := len(part) == 3 && part[2] == "ro"
		if len(part) != 2 && !ro || !path.IsAbs(part[0]) || !path.IsAbs(part[1]) || strings.Contains(part[0], "..") {
			return nil, nil, fmt.Errorf("kube: mount %q: must be /from:/to or /from:/to:ro", text)
		}
		name := fmt.Sprintf("mount-%d", i)
		volumes = append(volumes, corev1.Volume{
			Name:         name,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: part[0]}},
		})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: part[1], ReadOnly: ro})
	}
	return volumes, mounts, nil
}

// withDefaults fills in the zero fields but those of Keeping.
func (c Config) withDefaults() Config {
	c.Threshold = cmp.Or(c.Threshold, 30)
	c.GPUResource = cmp.Or(c.GPUResource, "nvidia.com/gpu")
	c.StartLimit = cmp.Or(c.StartLimit, 5*time.Minute)
	c.PlaceWait = cmp.Or(c.PlaceWait, 2*time.Second)
	c.CallTimeout = cmp.Or(c.CallTimeout, 10*time.Second)
	c.ControlLag = cmp.Or(c.ControlLag, time.Minute)
	c.NodeLag = cmp.Or(c.NodeLag, 15*time.Second)
	c.JobTTL = cmp.Or(c.JobTTL, 24*time.Hour)
	c.LogWait = cmp.Or(c.LogWait, 10*time.Second)
	return c
}
