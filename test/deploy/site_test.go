//go:build kube

package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// namespace of the sites of these tests.
const namespace = "federation"

// release is a site that Helm has installed.
type release struct {
	*testbed.Site
	t     *testing.T
	c     *cluster.Cluster
	pod   string
	ports map[string]string
	args  []string
}

// limit of one wait.
const limit = 2 * time.Minute

// helm runs Helm against the cluster; a failure ends the test.
func (r *release) helm(args ...string) string {
	r.t.Helper()
	out, err := helm(r.t, []string{"KUBECONFIG=" + r.c.Kubeconfig()}, append(args, "--namespace", namespace)...)
	if err != nil {
		r.t.Fatalf("helm %q: %v\n%s", args, err, out)
	}
	return out
}

// set adds values; variables of the environment are text even if they look like
// numbers.
func (r *release) set(values ...string) {
	for _, v := range values {
		flag := "--set"
		if strings.HasPrefix(v, "env[") {
			flag = "--set-string"
		}
		r.args = append(r.args, flag, v)
	}
}

// deploy installs or upgrades the release, with more values than it has.
func (r *release) deploy(command string, values ...string) string {
	r.t.Helper()
	r.set(values...)
	return r.helm(append([]string{command, r.Name, chart}, r.args...)...)
}

func (r *release) await(what string, cond func() error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	if err := testbed.Await(ctx, r.Name+": "+what, cond); err != nil {
		r.t.Fatalf("%v\n%s", err, r.story())
	}
}

// story is what there is to know of the pod when a test fails.
func (r *release) story() string {
	pods := r.c.Client().CoreV1().Pods(namespace)
	p, err := pods.Get(r.t.Context(), r.pod, metav1.GetOptions{})
	status, _ := json.Marshal(p.Status.ContainerStatuses)
	log, logErr := pods.GetLogs(r.pod, &corev1.PodLogOptions{}).DoRaw(r.t.Context())
	before, _ := pods.GetLogs(r.pod, &corev1.PodLogOptions{Previous: true}).DoRaw(r.t.Context())
	events, _ := r.c.Client().CoreV1().Events(namespace).List(r.t.Context(), metav1.ListOptions{})
	var told strings.Builder
	for _, e := range events.Items {
		fmt.Fprintf(&told, "%s %s: %s\n", e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return fmt.Sprintf("%v %v\n%s\n%s\n--- before\n%s\n--- events\n%s", err, logErr, status, log, before, &told)
}

// ready waits until the pod of this generation is ready, as the kubelet's probes
// see it, and the API answers.
func (r *release) ready(generation int64) {
	r.t.Helper()
	r.await("ready", func() error {
		s, err := r.c.Client().AppsV1().StatefulSets(namespace).Get(r.t.Context(), r.Name, metav1.GetOptions{})
		if err == nil && (s.Status.ObservedGeneration < generation || s.Status.UpdatedReplicas != 1 ||
			s.Status.ReadyReplicas != 1) {
			err = fmt.Errorf("%+v", s.Status)
		}
		return err
	})
	r.URL.Host = net.JoinHostPort(r.address(), r.ports["http"]) // another one after each start
	must(r.t, r.Ready(r.t.Context()))
}

// volume is a folder of this machine that the site's claim gets: there is no
// provisioner here. It is of a user of its own, as the image's; a folder's owner
// is nobody's to change (fsGroup does not hold for it).
func volume(t *testing.T, c *cluster.Cluster, claim string) {
	t.Helper()
	dir := filepath.Join(c.Dir, claim)
	must(t, errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65532, 65532)))
	_, err := c.Client().CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}

// newRelease has its volume and ports, and the image on the node.
func newRelease(t *testing.T, c *cluster.Cluster, name string, values ...string) *release {
	t.Helper()
	r := &release{
		t: t, c: c, pod: name + "-0", ports: map[string]string{},
		Site: &testbed.Site{Name: name, URL: &url.URL{Scheme: "http"}},
	}
	r.TokenPath = filepath.Join(c.Dir, "data-"+r.pod, "broker", "token")
	image := os.Getenv("CLOUDSHARE_IMAGE_TAG")
	// As text: a commit's short name may be all digits, which Helm reads as a number.
	r.args = []string{"--set-string", "image.tag=" + image[strings.LastIndexByte(image, ':')+1:], "--set", "image.pullPolicy=Never"}
	for _, key := range []string{"http", "peer", "gossip"} {
		addr, err := testbed.FreeAddress()
		must(t, err)
		_, port, _ := net.SplitHostPort(addr)
		values, r.ports[key] = append(values, "ports."+key+"="+port), port
	}
	r.set(values...)
	volume(t, c, "data-"+r.pod)
	return r
}

// TestSites: the chart on a real kubelet. One site founds a federation and runs a
// task as a Job; an upgrade keeps its data; another joins, leaves for good when it
// is uninstalled, and of both nothing is left but their claims.
//
// The cluster has neither a DNS nor a proxy for Services, and its API listens on
// loopback only. So the first site takes its node's network, and reaches the API
// there; the second has an address of its own, told instead of its name.
func TestSites(t *testing.T) {
	archive := os.Getenv("CLOUDSHARE_IMAGE")
	if archive == "" {
		t.Fatal("CLOUDSHARE_IMAGE and CLOUDSHARE_IMAGE_TAG must name the image: run make test-kube")
	}
	c := cluster.Start(t)
	node, err := c.AddNode(t.Context(), "real-1")
	must(t, err)
	must(t, node.Import(t.Context(), archive))
	must(t, c.Namespace(t.Context(), namespace))
	api, err := url.Parse(c.Config().Host)
	must(t, err)

	a := newRelease(t, c, "cloudshare-a", "site=a", "insecure=true", "federation.bootstrap=true", "network.mode=host",
		"kube.namespace=tasks", "kube.createNamespace=true", "kube.threshold=0", "resources.requests.cpu=10m",
		"env[0].name=KUBERNETES_SERVICE_HOST", "env[0].value="+api.Hostname(), "env[1].name=KUBERNETES_SERVICE_PORT", "env[1].value="+api.Port())
	notes := a.deploy("install")
	for _, want := range []string{"THE API IS PLAIN HTTP (--insecure)", "-- /cloudshare invite NAME >NAME.invitation", "--set federation.bootstrap=false", "--set onStop=forget"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	a.ready(1)
	if _, err = os.Stat(filepath.Join(c.Dir, "data-"+a.pod, "broker", "raft")); err != nil {
		t.Errorf("its data are not in the volume: %v", err)
	}
	first := a.runs("echo from $CLOUDSHARE_SITE")

	a.deploy("upgrade", "federation.bootstrap=false")
	a.ready(2)
	if j, err := a.Job(t.Context(), first); err != nil || j.State != "succeeded" {
		t.Errorf("after the upgrade the job is %+v, %v", j, err)
	}
	a.runs("echo from $CLOUDSHARE_SITE")

	b := newRelease(t, c, "cloudshare-b", "site=b", "insecure=true", "federation.invitation.secret="+a.invites("b"),
		"network.advertise=$(POD_IP)", "kube.enabled=false", "config.commands=true", "config.cores=1", "resources.requests.cpu=10m")
	b.deploy("install")
	b.ready(1)
	b.deploy("upgrade", "onStop=forget")
	b.ready(2)
	b.helm("uninstall", b.Name, "--wait")
	a.await("b has left", func() error {
		i, err := a.Info(t.Context(), "b")
		if err == nil && i.State != "left" {
			err = fmt.Errorf("b is %s", i.State)
		}
		return err
	})
	b.leavesOnlyItsClaim()
	a.helm("uninstall", a.Name, "--wait")
	a.leavesOnlyItsClaim()

	// By default a pod is told of by its name in the cluster's DNS.
	named := newRelease(t, c, "cloudshare-c", "site=c", "insecure=true", "federation.bootstrap=true",
		"kube.enabled=false", "config.commands=true", "config.cores=1", "resources.requests.cpu=10m")
	named.deploy("install")
	named.ready(1)
	told, _, err := named.Do(t.Context(), http.MethodGet, "/v1/sites", nil, nil)
	if want := `"cloudshare-c-0.cloudshare-c-peers.federation.svc.cluster.local:` + named.ports["peer"] + `"`; err != nil || !strings.Contains(string(told), want) {
		t.Errorf("%s is not told: %s, %v", want, told, err)
	}
}

// invites has the site invite another, as its operator, and puts what it gets into a Secret, whose name is returned.
func (r *release) invites(name string) string {
	r.t.Helper()
	text, err := r.Invite(r.t.Context(), name)
	must(r.t, err)
	secret := name + "-invitation"
	_, err = r.c.Client().CoreV1().Secrets(namespace).Create(r.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret}, StringData: map[string]string{"invitation": text},
	}, metav1.CreateOptions{})
	must(r.t, err)
	return secret
}

// address waits until the pod has one, that of its node in host mode.
func (r *release) address() (address string) {
	r.await("an address", func() error {
		p, err := r.c.Client().CoreV1().Pods(namespace).Get(r.t.Context(), r.pod, metav1.GetOptions{})
		if address = p.Status.PodIP; err == nil && address == "" {
			err = fmt.Errorf("%+v", p.Status)
		}
		return err
	})
	return address
}

// runs has a task run as a Job of the cluster; the job's id is returned.
func (r *release) runs(script string) string {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"image": cluster.Image, "command": []string{"/bin/sh", "-c", script}})
	must(r.t, err)
	b, _, err := r.Do(r.t.Context(), http.MethodPost, "/v1/jobs", http.Header{"Content-Type": {"application/json"}}, body)
	must(r.t, err)
	var accepted testbed.Accepted
	must(r.t, json.Unmarshal(b, &accepted))
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	j, err := r.AwaitJob(ctx, accepted.ID, "succeeded", "failed", "lost")
	if err != nil || j.State != "succeeded" {
		r.t.Fatalf("the job is %+v: %v\n%s", j, err, r.story())
	}
	if out, err := r.Logs(r.t.Context(), accepted.ID, 0); err != nil || out != "from a\n" {
		r.t.Errorf("it said %q, %v", out, err)
	}
	return accepted.ID
}

// leavesOnlyItsClaim: everything that the chart made is gone, the claim stands.
func (r *release) leavesOnlyItsClaim() {
	r.t.Helper()
	s := newServer(r.t, r.c)
	var args []string
	for _, v := range r.args {
		args = append(args, strings.Replace(v, "federation.bootstrap=false", "federation.bootstrap=true", 1))
	}
	for _, o := range objectsIn(r.t, rendered(r.t, r.Name, namespace, args...)) {
		r.await(nameOf(o)+" is gone", func() error {
			there, err := s.present(r.t.Context(), o)
			if err == nil && there {
				err = errors.New("it is there")
			}
			return err
		})
	}
	r.await("the pod is gone", func() error {
		_, err := r.c.Client().CoreV1().Pods(namespace).Get(r.t.Context(), r.pod, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if _, err := r.c.Client().CoreV1().PersistentVolumeClaims(namespace).Get(r.t.Context(), "data-"+r.pod,
		metav1.GetOptions{}); err != nil {
		r.t.Errorf("the claim: %v", err)
	}
}
