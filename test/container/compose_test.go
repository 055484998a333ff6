//go:build container

package container

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// composition is deploy/compose/compose.yaml on an engine of its own.
type composition struct {
	*solo.Broker // the first one
	env          []string
}

// run has Docker Compose do something with it.
func (c *composition) run(args ...string) (said string) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "docker-compose", append([]string{"-p", "cloudshare", "-f", "../../deploy/compose/compose.yaml"}, args...)...)
	cmd.Env = c.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("docker-compose %q: %v (apt-get install docker-compose)\n%s", args, err, out)
	}
	return string(out)
}

// keepsSecrets checks that invitations and the operator's token are in files of root alone, and in no log, no
// container's definition and no command line.
func (c *composition) keepsSecrets(e *engines.Engine) {
	c.Helper()
	seen := c.run("logs") + c.run("config")
	containers, err := e.Call(c.Context(), http.MethodGet, "/v1.41/containers/json?all=1", nil)
	must(c.T, err)
	var all []struct {
		ID string `json:"Id"`
	}
	must(c.T, json.Unmarshal(containers, &all))
	for _, one := range all {
		b, err := e.Call(c.Context(), http.MethodGet, "/v1.41/containers/"+one.ID+"/json", nil)
		must(c.T, err)
		top, err := e.Call(c.Context(), http.MethodGet, "/v1.41/containers/"+one.ID+"/top", nil)
		if seen += string(b); err == nil { // it runs
			seen += string(top)
		}
	}
	for _, name := range []string{"a/token", "invitations/b/invitation", "invitations/c/invitation"} {
		path := filepath.Join(c.Dir, name)
		text, err := os.ReadFile(path)
		must(c.T, err)
		info, err := os.Stat(path)
		must(c.T, err)
		secret := strings.TrimSpace(string(text))
		if secret == "" || info.Mode().Perm() != 0o600 || strings.Contains(seen, secret) {
			c.Errorf("%s: mode %v, or it is to be seen", name, info.Mode())
		}
	}
}

// allAlive waits until the first site sees all three.
func (c *composition) allAlive() {
	c.Helper()
	c.Await("three sites", func() error {
		for _, name := range []string{"a", "b", "c"} {
			i, err := c.Info(c.Context(), name)
			if err == nil && i.State != "alive" {
				err = fmt.Errorf("%s is %s", name, i.State)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestCompose: the three sites of deploy/compose let each other in by secret files, share a bag of tasks, which are
// containers, and find each other again under other addresses, without what was in these files.
func TestCompose(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	image := loadImage(t, e)
	c := &composition{Broker: &solo.Broker{T: t, Site: &testbed.Site{
		Name: "a", Dir: t.TempDir(),
		URL: &url.URL{Scheme: "http"},
	}}}
	c.TokenPath = filepath.Join(c.Dir, "a", "token")
	c.env = append(os.Environ(), "DOCKER_HOST="+e.Address, "CLOUDSHARE_SOCKET="+strings.TrimPrefix(e.Address, "unix://"),
		"CLOUDSHARE_DATA="+c.Dir, "CLOUDSHARE_VERSION="+image[strings.LastIndexByte(image, ':')+1:])
	for _, key := range []string{"CLOUDSHARE_PORT_A", "CLOUDSHARE_PORT_B", "CLOUDSHARE_PORT_C"} {
		addr := solo.FreeAddress(t)
		_, port, _ := net.SplitHostPort(addr)
		c.env = append(c.env, key+"="+port)
		if key == "CLOUDSHARE_PORT_A" {
			c.URL.Host = addr
		}
	}
	c.run("up", "-d")
	c.allAlive()
	c.keepsSecrets(e)
	bag := shell("echo from $CLOUDSHARE_SITE; sleep 2")
	bag["count"] = 4
	id := c.Accept(bag)
	c.Reaches(id, "succeeded")
	tasks, err := c.Tasks(t.Context(), id)
	must(t, err)
	sites := map[string]bool{}
	for _, task := range tasks {
		sites[task.Site] = true
	}
	if len(sites) < 2 {
		t.Errorf("all ran at %v", sites)
	}
	c.run("down")
	left, err := e.Call(t.Context(), http.MethodGet, "/v1.41/networks", nil)
	must(t, err)
	var networks []struct{ Name string }
	must(t, json.Unmarshal(left, &networks))
	for _, n := range networks {
		if strings.HasPrefix(n.Name, "cloudshare") {
			t.Errorf("down leaves network %s", n.Name)
		}
	}
	for _, name := range []string{"b", "c"} { // members do not read theirs
		must(t, os.WriteFile(filepath.Join(c.Dir, "invitations", name, "invitation"), []byte("used\n"), 0o600))
	}
	c.run("up", "-d")
	c.allAlive()
	c.Reaches(id, "succeeded")
	c.run("down")
}
