package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// api is what is asked of a cluster: two groups of it, by client-go's transport,
// credentials and encodings, without its clientset, which would bring every
// other type of Kubernetes into the program.
type api struct {
	core, batch *rest.RESTClient
	codec       runtime.ParameterCodec
	host        string
	namespace   string
	timeout     time.Duration
	slots       chan struct{} // calls under way
}

const (
	// maxCalls under way at a time; watches and output that is followed are none.
	maxCalls = 64
	// namespaceFile is where a pod finds its own namespace.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	userAgent     = "cloudshare"
)

// dial reads the credentials; it asks the cluster nothing.
func dial(c Config) (*api, error) {
	conf, namespace, err := credentials(c)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err = errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	conf.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	conf.ContentType = runtime.ContentTypeProtobuf
	conf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	conf.UserAgent = userAgent
	conf.QPS = -1 // calls under way are bounded here, their rate by the server's own fairness
	a := &api{
		codec: runtime.NewParameterCodec(scheme), host: conf.Host, timeout: c.CallTimeout,
		slots:     make(chan struct{}, maxCalls),
		namespace: cmp.Or(c.Namespace, namespace, metav1.NamespaceDefault),
	}
	if a.core, err = group(conf, corev1.SchemeGroupVersion, "/api"); err == nil {
		a.batch, err = group(conf, batchv1.SchemeGroupVersion, "/apis")
	}
	return a, err
}

func group(conf *rest.Config, gv schema.GroupVersion, path string) (*rest.RESTClient, error) {
	conf = rest.CopyConfig(conf)
	conf.GroupVersion, conf.APIPath = &gv, path
	return rest.RESTClientFor(conf)
}

// credentials also returns the namespace that belongs to them.
func credentials(c Config) (*rest.Config, string, error) {
	if c.Cluster == InCluster {
		conf, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", fmt.Errorf("cluster %s: %w: run the broker in a pod with a service account, or name a kubeconfig", InCluster, err)
		}
		ns, err := os.ReadFile(namespaceFile)
		return conf, strings.TrimSpace(string(ns)), err
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Cluster},
		&clientcmd.ConfigOverrides{CurrentContext: c.Context})
	conf, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig %s: %w", c.Cluster, err)
	}
	ns, _, err := loader.Namespace()
	return conf, ns, err
}

// call bounds one call in time and all in number.
func (a *api) call(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d calls of the API are under way: %w", maxCalls, ctx.Err())
	}
	defer func() { <-a.slots }()
	return f(ctx)
}

// createTries of a Job that the server is too busy to take.
const createTries = 3

// create makes a Job; the server, too, gives up after the timeout. Only what it
// has turned away unread is sent again: after any other answer the Job may be
// there, and a refusal of the repeat, as by a quota, would say nothing of that.
func (a *api) create(ctx context.Context, j *batchv1.Job) error {
	return a.call(ctx, func(ctx context.Context) error {
		for try := 1; ; try++ {
			err := a.batch.Post().Namespace(a.namespace).Resource("jobs").Timeout(a.timeout).MaxRetries(0).
				Body(j).Do(ctx).Error()
			wait, later := apierrors.SuggestsClientDelay(err)
			if !later || !apierrors.IsTooManyRequests(err) || try == createTries {
				return err
			}
			select {
			case <-time.After(time.Duration(wait) * time.Second):
			case <-ctx.Done():
				return err
			}
		}
	})
}

func (a *api) job(ctx context.Context, name string) (*batchv1.Job, error) {
	j := &batchv1.Job{}
	return j, a.call(ctx, func(ctx context.Context) error {
		return a.batch.Get().Namespace(a.namespace).Resource("jobs").Name(name).Do(ctx).Into(j)
	})
}

// hasPod asks whether a Job has a pod, or the one of that name, past what the watch has told.
func (a *api) hasPod(ctx context.Context, job, name string) (bool, error) {
	l := &corev1.PodList{}
	which := metav1.ListOptions{LabelSelector: labelOfJob + "=" + job, Limit: 1}
	if name != "" {
		which.FieldSelector = fields.Set{"metadata.name": name}.String()
	}
	err := a.call(ctx, func(ctx context.Context) error {
		return a.core.Get().Namespace(a.namespace).Resource("pods").VersionedParams(&which, a.codec).Do(ctx).Into(l)
	})
	return len(l.Items) > 0, err
}

// removeJob has a Job and, behind it, its pods removed.
func (a *api) removeJob(ctx context.Context, name string) error {
	return a.call(ctx, func(ctx context.Context) error {
		return a.batch.Delete().Namespace(a.namespace).Resource("jobs").Name(name).
			Body(&metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationBackground)}).Do(ctx).Error()
	})
}

// removePod ends a pod: TERM, its grace, KILL.
func (a *api) removePod(ctx context.Context, name string) error {
	return a.call(ctx, func(ctx context.Context) error {
		return a.core.Delete().Namespace(a.namespace).Resource("pods").Name(name).
			Body(&metav1.DeleteOptions{}).Do(ctx).Error()
	})
}

// expirePod ends a pod that runs, like removePod, but leaves it there: its active deadline is
// over. Its note says why. The server, too, gives up after the timeout; Invalid: the pod does not
// run as it was seen to.
func (a *api) expirePod(ctx context.Context, pod *podView, note string) error {
	runs := fmt.Sprintf("/status/containerStatuses/%d/state/running/startedAt", pod.at)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": runs, "value": metav1.NewTime(pod.running)},
		{"op": "add", "path": "/metadata/annotations/" + strings.ReplaceAll(noteEnd, "/", "~1"), "value": note},
		{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1},
	})
	if err != nil {
		return err
	}
	return a.call(ctx, func(ctx context.Context) error {
		return a.core.Patch(types.JSONPatchType).Namespace(a.namespace).Resource("pods").Name(pod.name).
			Timeout(a.timeout).MaxRetries(0).Body(patch).Do(ctx).Error()
	})
}

// ungate has the scheduler see a pod; the server, too, gives up after the timeout.
func (a *api) ungate(ctx context.Context, name string) error {
	const patch = `{"spec":{"schedulingGates":[{"$patch":"delete","name":"` + gate + `"}]}}`
	return a.call(ctx, func(ctx context.Context) error {
		return a.core.Patch(types.StrategicMergePatchType).Namespace(a.namespace).Resource("pods").Name(name).
			Timeout(a.timeout).MaxRetries(0).Body([]byte(patch)).Do(ctx).Error()
	})
}

// warnings returns what Kubernetes says of an object, oldest first.
func (a *api) warnings(ctx context.Context, kind, name string) ([]corev1.Event, error) {
	l := &corev1.EventList{}
	which := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name, "type": corev1.EventTypeWarning}
	err := a.call(ctx, func(ctx context.Context) error {
		return a.core.Get().Namespace(a.namespace).Resource("events").
			VersionedParams(&metav1.ListOptions{FieldSelector: which.String(), Limit: 20}, a.codec).Do(ctx).Into(l)
	})
	return l.Items, err
}

// output opens what a pod's task has written.
func (a *api) output(ctx context.Context, pod string, o corev1.PodLogOptions) (io.ReadCloser, error) {
	o.Container = container
	return a.core.Get().Namespace(a.namespace).Resource("pods").Name(pod).SubResource("log").
		VersionedParams(&o, a.codec).Stream(ctx)
}

// alive asks whether the API answers at all; everybody who is known may.
func (a *api) alive(ctx context.Context) error {
	_, err := a.minor(ctx)
	return err
}

// minor returns the server's version behind "1.".
func (a *api) minor(ctx context.Context) (int, error) {
	var raw []byte
	err := a.call(ctx, func(ctx context.Context) (err error) {
		raw, err = a.core.Get().AbsPath("/version").Do(ctx).Raw()
		return err
	})
	if err != nil {
		return 0, err
	}
	var v version.Info
	if err = json.Unmarshal(raw, &v); err != nil {
		return 0, fmt.Errorf("read the server's version: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil {
		return 0, fmt.Errorf("read the server's version: %w", err)
	}
	return n, nil
}

// named are Kubernetes' names of the streams.
var named = [...]string{corev1.LogStreamStdout, corev1.LogStreamStderr}

// podLogs asks kubelets what pods have written.
type podLogs struct {
	api    *api
	merged atomic.Bool // the cluster does not tell stdout from stderr
	asked  atomic.Bool // its version, on which merged rests
}

// open reads a stream from the kubelet. Clusters tell the two apart only with the
// feature PodLogsQuerySplitStreams; elsewhere all is stdout.
func (l *podLogs) open(ctx context.Context, pod string, stream int, follow bool) (io.ReadCloser, error) {
	if l.splits(ctx) {
		rc, err := l.api.output(ctx, pod, corev1.PodLogOptions{Follow: follow, Stream: &named[stream]})
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return rc, err
		}
		if !strings.Contains(err.Error(), "stream") { // nothing is wrong with the question for one
			return nil, err
		}
		l.merged.Store(true)
	}
	return l.openAll(ctx, pod, stream, follow)
}

// splitsSince is the minor version whose servers understand the question for one
// stream, if only to refuse it; older ones would answer with both.
const splitsSince = 32

// splits reports whether the cluster may tell the streams apart.
func (l *podLogs) splits(ctx context.Context) bool {
	if !l.asked.Load() {
		minor, err := l.api.minor(ctx)
		if err != nil {
			return false
		}
		l.merged.Store(minor < splitsSince)
		l.asked.Store(true)
	}
	return !l.merged.Load()
}

func (l *podLogs) openAll(ctx context.Context, pod string, stream int, follow bool) (io.ReadCloser, error) {
	if stream != 0 {
		return io.NopCloser(eof{}), nil
	}
	return l.api.output(ctx, pod, corev1.PodLogOptions{Follow: follow})
}
