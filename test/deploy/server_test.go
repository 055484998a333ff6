//go:build kube

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cloudshare/cloudshare/test/kube/cluster"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// everything switches on whatever the chart has.
const everything = founder + `,kube.namespace=tasks,kube.createNamespace=true,kube.nodeSelector.pool=lend,kube.nodeLabels={topology.kubernetes.io/zone},kube.tolerations={gpu:NoSchedule},` +
	`kube.images={docker.io/library/*},kube.watchdog.enabled=true,kube.user=1000:1000,kube.readOnly=true,kube.priorityClassName=low,kube.pullSecrets={registry},` +
	`serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,external.enabled=true,network.advertise=lab-a.example.org,` +
	`network.httpNames={cloudshare.example.org},networkPolicy.clients[0].namespaceSelector.matchLabels.users=yes,networkPolicy.monitoring[0].namespaceSelector.matchLabels.a=b,` +
	`networkPolicy.peers[0].ipBlock.cidr=203.0.113.0/24,image.pullSecrets={registry},onStop=leave,persistence.storageClass=fast,` +
	`service.annotations.a=b,external.sourceRanges={203.0.113.0/24},podAnnotations.a=b,podLabels.a=b,nodeSelector.a=b,priorityClassName=high,` +
	`tolerations[0].key=a,tolerations[0].operator=Exists,env[0].name=A,env[0].value=b,config.task_logs.keep=1h,serviceAccount.annotations.a=b,profile=wan`

// variants of values that the server sees, and brokers.
func variants(t testing.TB) map[string]string {
	return map[string]string{
		"least":      rendered(t, "cs", "cs", "--set", founder),
		"everything": rendered(t, "cs", "cs", "--set", everything),
		"host":       rendered(t, "cs", "cs", "--set", founder+",network.mode=host,networkPolicy.enabled=false,podDisruptionBudget.enabled=false"),
		"join":       rendered(t, "cs", "cs", "--set", "site=b,insecure=true,federation.invitation.secret=b-invitation,kube.dedicated=true,kube.threshold=0"),
		"own":        rendered(t, "cs", "cs", "--set", founder+",kube.enabled=false,config.commands=true,serviceAccount.create=false,rbac.create=false"),
		"plain":      read(t, files, "kubernetes/site.yaml"),
	}
}

// TestServerTakesAll: a real API server validates everything that the chart can
// make, unknown fields included. The two kinds of prometheus-operator are there by
// the schemas of its CRDs; its controller is not.
func TestServerTakesAll(t *testing.T) {
	c := cluster.Start(t)
	for _, crd := range []string{"servicemonitors", "prometheusrules"} {
		for _, o := range objectsIn(t, read(t, "testdata", crd+".crd.yaml")) {
			must(t, newServer(t, c).create(t.Context(), o))
		}
	}
	s := newServer(t, c)
	must(t, testbed.Await(t.Context(), "the CRDs", func() error {
		s = newServer(t, c)
		for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
			at, err := s.of(objectsIn(t, "{apiVersion: monitoring.coreos.com/v1, kind: "+kind+"}")[0])
			if err != nil {
				return err
			}
			if _, err = at.List(t.Context(), metav1.ListOptions{}); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, ns := range []string{"cs", "cloudshare", "tasks", "cloudshare-tasks"} {
		must(t, c.Namespace(t.Context(), ns))
	}
	for name, text := range variants(t) {
		kinds := map[string]bool{}
		for _, o := range objectsIn(t, text) {
			kinds[o.GetKind()] = true
			if o.GetKind() == "Namespace" { // it is there, for what is in it
				o.SetName("of-" + o.GetName())
			}
			if err := s.create(t.Context(), o, metav1.DryRunAll); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if want := name == "everything"; kinds["ServiceMonitor"] != want || kinds["PrometheusRule"] != want || !kinds["StatefulSet"] {
			t.Errorf("%s has %v", name, kinds)
		}
	}
	wrong := objectsIn(t, read(t, files, "kubernetes/site.yaml"))[0]
	wrong.Object["specc"] = map[string]any{}
	if err := s.create(t.Context(), wrong, metav1.DryRunAll); err == nil || !strings.Contains(err.Error(), "specc") {
		t.Errorf("the server takes an unknown field: %v", err)
	}
}

// TestBrokersTakeTheirConfiguration that the chart writes, and its arguments.
func TestBrokersTakeTheirConfiguration(t *testing.T) {
	for name, text := range variants(t) {
		var config string
		var args []string
		for _, o := range objectsIn(t, text) {
			if data, ok, _ := unstructured.NestedString(o.Object, "data", "broker.yaml"); ok {
				config = data
			}
			if boxes, ok, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers"); ok {
				args, _, _ = unstructured.NestedStringSlice(boxes[0].(map[string]any), "args")
			}
		}
		path := filepath.Join(t.TempDir(), "broker.yaml")
		must(t, os.WriteFile(path, []byte(config), 0o600))
		if !slices.Contains(args, "--insecure") {
			t.Errorf("%s: --insecure is not to be seen in %q", name, args)
		}
		values := strings.NewReplacer("/etc/cloudshare/broker.yaml", path, "$(POD_NAME)", "pod-0", "$(POD_NAMESPACE)", "ns", "$(NODE_IP)", "192.0.2.1")
		for i := range args {
			args[i] = values.Replace(args[i])
		}
		if out, err := exec.CommandContext(t.Context(), cloudshare, append(args, "--check-config")...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, config)
		}
	}
}
