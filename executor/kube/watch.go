package kube

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// mirror keeps what a watch of one kind of objects says, as far as it matters
// here (client-go's reflector keeps it current), and tells what changed. It is
// the whole informer: objects themselves are not kept.
type mirror[V any] struct {
	read    func(runtime.Object) *V // nil = none of ours
	changed func(was, is *V)        // either may be nil; called in order, without mu

	mu     sync.RWMutex
	items  map[string]*V // by namespace/name
	synced chan struct{} // closed when the first list is there
}

func newMirror[V any](read func(runtime.Object) *V, changed func(was, is *V)) *mirror[V] {
	return &mirror[V]{read: read, changed: changed, items: map[string]*V{}, synced: make(chan struct{})}
}

var _ cache.ReflectorStore = (*mirror[podView])(nil)

// get returns what is known by a key, nil = nothing.
func (m *mirror[V]) get(key string) *V {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.items[key]
}

// all returns what there is, in no order.
func (m *mirror[V]) all() []*V {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*V, 0, len(m.items))
	for _, v := range m.items {
		out = append(out, v)
	}
	return out
}

func (m *mirror[V]) isSynced() bool {
	select {
	case <-m.synced:
		return true
	default:
		return false
	}
}

// put takes an object's new state, nil = it is gone.
func (m *mirror[V]) put(key string, is *V) {
	m.mu.Lock()
	was := m.items[key]
	if is == nil {
		delete(m.items, key)
	} else {
		m.items[key] = is
	}
	m.mu.Unlock()
	if was != nil || is != nil {
		m.changed(was, is)
	}
}

// Add implements cache.ReflectorStore.
func (m *mirror[V]) Add(obj any) error { return m.Update(obj) }

// Update implements cache.ReflectorStore.
func (m *mirror[V]) Update(obj any) error {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	o, ok := obj.(runtime.Object)
	if !ok {
		return nil
	}
	m.put(key, m.read(o))
	return nil
}

// Delete implements cache.ReflectorStore.
func (m *mirror[V]) Delete(obj any) error {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	if o, ok := obj.(runtime.Object); ok { // the last word of it, then its end
		if last := m.read(o); last != nil {
			m.put(key, last)
		}
	}
	m.put(key, nil)
	return nil
}

// Replace implements cache.ReflectorStore: after a break of the watch.
func (m *mirror[V]) Replace(list []any, _ string) error {
	there := make(map[string]bool, len(list))
	for _, obj := range list {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return err
		}
		there[key] = true
		if err = m.Update(obj); err != nil {
			return err
		}
	}
	m.mu.RLock()
	var gone []string
	for key := range m.items {
		if !there[key] {
			gone = append(gone, key)
		}
	}
	m.mu.RUnlock()
	for _, key := range gone {
		m.put(key, nil)
	}
	if !m.isSynced() { // Replace is called by one goroutine
		close(m.synced)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (m *mirror[V]) Resync() error { return nil }

// source is what a mirror shows.
type source struct {
	kind      string // "pods", for people
	client    *rest.RESTClient
	namespace string // "" = all
	resource  string
	labels    string
	object    runtime.Object
	list      func() runtime.Object
}

// keepCurrent keeps a mirror current until ctx ends. heard is told of each answer.
func keepCurrent[V any](ctx context.Context, s source, m *mirror[V], codec runtime.ParameterCodec,
	heard func(kind string, err error),
) {
	request := func(o metav1.ListOptions) *rest.Request {
		o.LabelSelector = s.labels
		return s.client.Get().Namespace(s.namespace).Resource(s.resource).VersionedParams(&o, codec).MaxRetries(0)
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := s.list()
			err := request(o).Do(ctx).Into(list)
			heard(s.kind, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			r := request(o)
			if o.TimeoutSeconds != nil {
				r.Timeout(time.Duration(*o.TimeoutSeconds) * time.Second)
			}
			w, err := r.Watch(ctx)
			heard(s.kind, err)
			return w, err
		},
	}
	// An outage is over sooner than client-go would look again.
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 3 * time.Second}
	r := cache.NewReflectorWithOptions(lw, s.object, m, cache.ReflectorOptions{Name: s.kind, Backoff: backoff})
	r.RunWithContext(ctx)
}

// sources of what is shown: Jobs of ours, pods, and nodes.
func (c *clusterView) sources() (jobs, pods, nodes source) {
	ours := labelHome + "=" + c.decoder.home
	jobs = source{
		kind: "jobs", client: c.api.batch, namespace: c.api.namespace, resource: "jobs", labels: ours,
		object: &batchv1.Job{}, list: func() runtime.Object { return &batchv1.JobList{} },
	}
	pods = source{
		kind: "pods", client: c.api.core, resource: "pods", object: &corev1.Pod{},
		list: func() runtime.Object { return &corev1.PodList{} },
	}
	if c.dedicated {
		pods.namespace, pods.labels = c.api.namespace, ours
	}
	nodes = source{
		kind: "nodes", client: c.api.core, resource: "nodes", object: &corev1.Node{},
		list: func() runtime.Object { return &corev1.NodeList{} },
	}
	return jobs, pods, nodes
}
