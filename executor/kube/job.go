package kube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/kube/guard"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

const (
	// container is the only one of a pod.
	container = "task"
	// workVolume is its private directory.
	workVolume = "work"
)

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func ptr[T any](v T) *T { return &v }

// jobBuilder makes the Jobs of attempts: what is asked of Kubernetes, and how long that
// may live.
type jobBuilder struct {
	cfg       *Config
	home      string // see labelHome
	namespace string
	choice    *nodeChoice
	key       []byte // of the watchdogs' secrets; nil = there are none
}

// job returns the attempt's Job; node is the name of the node it is tied to.
func (b *jobBuilder) job(w *work, node string) (*batchv1.Job, error) {
	pod, err := b.podSpec(w, node)
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Labels: b.labels(w.Task), Annotations: map[string]string{noteName: w.Name}}
	j := &batchv1.Job{
		ObjectMeta: *meta.DeepCopy(),
		Spec: batchv1.JobSpec{
			Parallelism: ptr[int32](1), Completions: ptr[int32](1), BackoffLimit: ptr[int32](0),
			TTLSecondsAfterFinished: ptr(int32(seconds(b.cfg.JobTTL))),
			Template:                corev1.PodTemplateSpec{ObjectMeta: meta, Spec: pod},
		},
	}
	j.Name, j.Namespace = w.job, b.namespace
	if w.Task.Timeout > 0 {
		// Both count the start, too. While the broker lives it ends the task by the
		// moment that it began: see look.
		j.Spec.ActiveDeadlineSeconds = ptr(b.deadline(&w.Task, w.fetching()))
		j.Spec.Template.Spec.ActiveDeadlineSeconds = ptr(b.deadline(&w.Task, w.fetching()))
	}
	return j, nil
}

// deadline of a Job, and of its pod, in seconds: its files come and go within it.
func (b *jobBuilder) deadline(t *executor.Task, fetching time.Duration) int64 {
	return seconds(b.cfg.StartLimit+fetching) + seconds(t.Timeout) + seconds(sending(t))
}

// bound returns how long a task may live when nobody here helps: see [Handler.Bound].
func (b *jobBuilder) bound(t *executor.Task, fetching time.Duration) (time.Duration, bool) {
	if t.Timeout <= 0 {
		return 0, false
	}
	d := time.Duration(b.deadline(t, fetching)) * time.Second
	grace := time.Duration(seconds(b.cfg.Grace)+seconds(sending(t))) * time.Second
	return b.cfg.ControlLag + 2*d + grace + b.cfg.NodeLag, true
}

func (b *jobBuilder) podSpec(w *work, node string) (corev1.PodSpec, error) {
	c, t := b.cfg, w.Task
	env, err := environ(t)
	if err != nil {
		return corev1.PodSpec{}, fmt.Errorf("%w: %w", executor.ErrUnfit, err)
	}
	security, err := c.user()
	if err != nil {
		return corev1.PodSpec{}, err
	}
	volumes, mounts, err := c.mounts()
	if err != nil {
		return corev1.PodSpec{}, err
	}
	volumes = append(volumes, scratch(workVolume, c.ScratchMiB, w.bytes()))
	mounts = append(mounts, corev1.VolumeMount{Name: workVolume, MountPath: guard.Work})
	if c.ReadOnly {
		volumes = append(volumes, scratch("tmp", c.ScratchMiB, 0))
		mounts = append(mounts, corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"})
	}
	box := corev1.Container{
		Name: container, Image: w.image, ImagePullPolicy: corev1.PullPolicy(c.PullPolicy),
		Command: literal(t.Command), Env: env, Resources: b.resources(t.Need), VolumeMounts: mounts,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(c.ReadOnly),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if c.PrivateDir || w.carried {
		box.WorkingDir = guard.Work
	}
	if w.disk && w.bytes() > 0 {
		box.Resources.Requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(w.bytes(), resource.BinarySI)
	}
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr(seconds(c.Grace)),
		AutomountServiceAccountToken: ptr(false), EnableServiceLinks: ptr(false),
		// Its own first process would be deaf to signals that it does not handle.
		ShareProcessNamespace: ptr(true),
		ServiceAccountName:    c.ServiceAccount, PriorityClassName: c.PriorityClass,
		ImagePullSecrets: secrets(c.PullSecrets), SecurityContext: security,
		NodeSelector: b.choice.labels, Tolerations: b.choice.tolerations, Affinity: on(node),
		SchedulingGates: []corev1.PodSchedulingGate{{Name: gate}},
		Containers:      []corev1.Container{box}, Volumes: volumes,
	}
	if w.watched || w.carried {
		err = b.putUnder(w, &pod)
	}
	return pod, err
}

// scratch is a folder of the pod's own, which is bounded if the site bounds such.
func scratch(name string, mib, files int64) corev1.Volume {
	dir := &corev1.EmptyDirVolumeSource{}
	if mib > 0 {
		dir.SizeLimit = resource.NewQuantity(mib<<20+files, resource.BinarySI)
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: dir}}
}

// on ties a pod to a node without going round the scheduler: it alone knows what
// it has promised of the node to others a moment ago.
func on(node string) *corev1.Affinity {
	term := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
	}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{term},
		},
	}}
}

func secrets(names []string) (out []corev1.LocalObjectReference) {
	for _, name := range names {
		out = append(out, corev1.LocalObjectReference{Name: name})
	}
	return out
}

// user reads User.
func (c Config) user() (*corev1.PodSecurityContext, error) {
	s := &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if c.User == "" {
		return s, nil
	}
	uid, gid, both := strings.Cut(c.User, ":")
	if !both {
		gid = uid
	}
	u, err := strconv.ParseInt(uid, 10, 32)
	g, gerr := strconv.ParseInt(gid, 10, 32)
	if err != nil || gerr != nil || u < 0 || g < 0 {
		return nil, fmt.Errorf("kube: user %q: must be UID or UID:GID, such as 1000:1000", c.User)
	}
	s.RunAsUser, s.RunAsGroup, s.FSGroup, s.RunAsNonRoot = &u, &g, &g, ptr(u != 0)
	return s, nil
}

// resources returns both requested and the limit.
func (b *jobBuilder) resources(need executor.Resources) corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(need.MilliCPU, resource.DecimalSI)}
	if need.MemMiB > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(need.MemMiB<<20, resource.BinarySI)
	}
	if need.GPU > 0 {
		list[corev1.ResourceName(b.cfg.GPUResource)] = *resource.NewQuantity(need.GPU, resource.DecimalSI)
	}
	return corev1.ResourceRequirements{Requests: list, Limits: maps.Clone(list)}
}

// environ returns what a task finds besides its image's own environment.
func environ(t executor.Task) ([]corev1.EnvVar, error) {
	all, err := watchdog.Environ(t, guard.Work)
	if err != nil {
		return nil, err
	}
	out := make([]corev1.EnvVar, 0, len(all))
	for _, kv := range all {
		k, v, _ := strings.Cut(kv, "=")
		if _, said := t.Env[k]; !said && (k == "PATH" || k == "LANG") {
			continue // the image knows better
		}
		out = append(out, corev1.EnvVar{Name: k, Value: escape(v)})
	}
	return out, nil
}

// literal returns a command that Kubernetes takes as it is.
func literal(command []string) []string {
	out := slices.Clone(command)
	for i := range out {
		out[i] = escape(out[i])
	}
	return out
}

// escape keeps Kubernetes from expanding $(NAME), and from reading $$ as $.
func escape(text string) string { return strings.ReplaceAll(text, "$", "$$") }
