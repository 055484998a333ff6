//go:build container

package container

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

func TestMain(m *testing.M) { solo.Main(m) }

// newSite starts a site with one core for commands.
func newSite(t *testing.T, name string, args ...string) *solo.Broker {
	t.Helper()
	return solo.New(t, name, append([]string{"--cores", "1"}, args...)...)
}

// containers are the flags of a site with one core for them.
func containers(e *engines.Engine, more ...string) []string {
	return append([]string{"--container-engine", e.Address, "--container-cores", "1", "--container-network", "none"}, more...)
}

// shell is a job that runs a script in the busybox.
func shell(script string) map[string]any { return solo.Shell(engines.Image, script) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// none is an error as long as the engine runs containers of ours.
func none(ctx context.Context, e *engines.Engine) error {
	b, err := e.Call(ctx, http.MethodGet, `/v1.41/containers/json?filters={"label":["cloudshare.site"]}`, nil)
	if n := strings.Count(string(b), `"ImageID"`); err == nil && n > 0 {
		err = errors.New(strconv.Itoa(n) + " containers run")
	}
	return err
}
