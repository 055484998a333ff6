//go:build container

package container

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

// death returns what asks the kernel whether the first process of e's only task is dead: the engine itself may hang,
// and hears of a death late where the machine is busy.
func death(t *testing.T, e *engines.Engine) func() bool {
	t.Helper()
	var listed []struct{ ID string }
	ask(t, e, `/v1.41/containers/json?filters={"label":["cloudshare.site"]}`, &listed)
	if len(listed) != 1 {
		t.Fatalf("%d containers run, want one", len(listed))
	}
	var inspected struct{ State struct{ Pid int } }
	ask(t, e, "/v1.41/containers/"+listed[0].ID+"/json", &inspected)
	fd, err := unix.PidfdOpen(inspected.State.Pid, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return func() bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n == 1
	}
}

func ask(t *testing.T, e *engines.Engine, path string, into any) {
	t.Helper()
	b, err := e.Call(t.Context(), http.MethodGet, path, nil)
	must(t, err)
	must(t, json.Unmarshal(b, into))
}
