//go:build kube

package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/goldenfile"
	"github.com/cloudshare/cloudshare/test/kube/cluster"
)

// helm runs Helm, which the harness has built, and returns what it printed; env is
// added to the environment.
func helm(t testing.TB, env []string, args ...string) (string, error) {
	t.Helper()
	path, err := cluster.Binary("helm")
	must(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	home := filepath.Join(t.TempDir(), "helm")
	cmd.Env = append(append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// rendered is what the chart makes of values, in files or as --set takes them.
func rendered(t testing.TB, release, namespace string, args ...string) string {
	t.Helper()
	out, err := helm(t, nil, append([]string{"template", release, chart, "--namespace", namespace, "--kube-version", "1.34.0"}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// founder are the values that every site that founds a federation must have.
const founder = "site=lab-a,insecure=true,federation.bootstrap=true"

// TestChartRefuses: what is wrong is named before anything is installed.
func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"insecure=true,federation.bootstrap=true":               "at '/site'",
		"site=Lab_A,insecure=true,federation.bootstrap=true":    "at '/site'",
		"site=a,federation.bootstrap=true":                      "insecure is false, and the API is plain HTTP",
		"site=a,insecure=true":                                  "or invitation: {secret: NAME} to join one; a member makes it: cloudshare invite a",
		founder + ",federation.invitation.secret=b":             "a site either founds a federation or joins one",
		"site=a,insecure=true,federation.invitation.secret=B_C": "at '/federation/invitation/secret'",
		"site=a,insecure=true,federation.join={b:7701}":         "additional properties 'join' not allowed",
		founder + ",replicas=3":                                 "additional properties 'replicas' not allowed",
		founder + ",network.mode=nat":                           "at '/network/mode'",
		founder + ",ports.http=70000":                           "at '/ports/http'",
		founder + ",kube.threshold=101":                         "at '/kube/threshold'",
		founder + ",kube.tolerations={a:Always}":                "at '/kube/tolerations/0'",
		founder + ",kube.watchdog.url=broker:7703":              "at '/kube/watchdog/url'",
		founder + ",kube.createNamespace=true":                  "kube.createNamespace: name one in kube.namespace",
		founder + ",kube.enabled=false":                         "nothing could run",
		founder + ",external.enabled=true":                      "external.enabled without network.advertise",
		founder + ",persistence.size=10GB":                      "at '/persistence/size'",
		founder + ",s3.secret=A_B":                              "at '/s3/secret'",
		founder + ",s3.secretKey=x":                             "additional properties 'secretKey' not allowed",
		founder + ",onStop=delete":                              "at '/onStop'",
		founder + ",podDisruptionBudget.maxUnavailable=2":       "at '/podDisruptionBudget/maxUnavailable'",
	} {
		out, err := helm(t, nil, "template", "x", chart, "--kube-version", "1.34.0", "--set", values)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("--set %s: %v, want %q:\n%.500s", values, err, want, out)
		}
	}
}

func TestChartLints(t *testing.T) {
	out, err := helm(t, nil, "lint", chart, "--strict", "--kube-version", "1.34.0", "--set", founder)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestS3KeysOfTheChart are files of a Secret: the ConfigMap names them only, beside what the operator says.
func TestS3KeysOfTheChart(t *testing.T) {
	out := rendered(t, "x", "y", "--set", founder+",s3.secret=store,config.data.s3.endpoint=https://s3.example.org,"+
		"config.data.fetch_from={s3://data}")
	for _, want := range []string{
		"access_key: '@/run/cloudshare-s3/access-key'", "secret_key: '@/run/cloudshare-s3/secret-key'", "endpoint: https://s3.example.org", "- s3://data",
		"{name: s3, mountPath: /run/cloudshare-s3, readOnly: true}", "secretName: store",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
	if out = rendered(t, "x", "y", "--set", founder); strings.Contains(out, "s3") {
		t.Errorf("without: %s", out)
	}
}

// TestPlainManifests are what the chart makes of the values beside them: one source.
func TestPlainManifests(t *testing.T) {
	const head = `# One site without Helm: rendered from deploy/helm/cloudshare with the values beside
# this file; see README.md. The API is plain HTTP (--insecure), peer and gossip are encrypted.
# Written by "go test -tags kube ./test/deploy -run TestPlainManifests -rewrite".
`
	out := rendered(t, "cloudshare", "cloudshare", "--values", files+"/kubernetes/values.yaml")
	goldenfile.Match(t, "../"+files+"/kubernetes/site.yaml", head+regexp.MustCompile(`(?m)^# Source: .*\n`).ReplaceAllString(out, ""))
}
