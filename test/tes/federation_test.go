//go:build tes

package tes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// image is what Snakemake asks for by itself: that of its own version. Here it is Debian's package in a minimal Debian.
const image = "snakemake/snakemake:v7.21.0"

func TestMain(m *testing.M) { solo.Main(m) }

// federation is three sites with a core for containers each, and a user of the first.
type federation struct {
	*testing.T
	engine *engines.Engine
	sites  []*solo.Broker
	home   string // the user's folder, at the same path in the container in which commands are typed
	typed  int
}

// start starts the sites. The user may read and write files of the home folder by TES, through the first site's broker.
func start(t *testing.T) *federation {
	t.Helper()
	f := &federation{T: t, engine: engines.Start(t, engines.Docker), home: t.TempDir()}
	f.load()
	flags := []string{
		"--commands=false", "--container-engine", f.engine.Address, "--container-cores", "1",
		"--container-network", "none", "--container-pull", "never", "--tes-roots", "alice=" + f.home,
	}
	a := solo.New(t, "site-1", append(flags, "--bootstrap")...)
	b := solo.New(t, "site-2", append(flags, a.Invites("site-2")...)...)
	c := solo.New(t, "site-3", append(flags, a.Invites("site-3", b)...)...)
	f.sites = []*solo.Broker{a, b, c}
	f.admit("alice")
	return f
}

// admit has the first site's operator give the user a token, in a file of her home.
func (f *federation) admit(user string) {
	f.Helper()
	a := f.sites[0]
	cmd := exec.Command(solo.Binary, "--addr", a.URL.String(), "--token-file", a.TokenFile(), "token", "create", user, "--out", filepath.Join(f.home, "token"))
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("make a token of %s: %v\n%s", user, err, out)
	}
}

// load gives the engine the image that .ci/tes has made.
func (f *federation) load() {
	f.Helper()
	path := os.Getenv("CLOUDSHARE_TES_IMAGE")
	if path == "" {
		f.Fatal("CLOUDSHARE_TES_IMAGE must name the image: run make test-tes")
	}
	tar, err := os.Open(path)
	f.must(err)
	defer tar.Close()
	f.must(f.engine.ImportFiles(f.Context(), tar, image, "ENV PATH=/usr/local/bin:/usr/bin:/bin"))
}

func (f *federation) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// write makes a file of the user's, in folders that are made, too.
func (f *federation) write(name, text string) {
	f.Helper()
	path := filepath.Join(f.home, name)
	f.must(os.MkdirAll(filepath.Dir(path), 0o700))
	f.must(os.WriteFile(path, []byte(text), 0o600))
}

// read returns a file of the user's.
func (f *federation) read(name string) string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.home, name))
	f.must(err)
	return string(text)
}

// command is one that a user has typed, in a container that has this machine's network and the user's folder.
type command struct {
	*federation
	id, out string
	ended   chan struct{}
	code    int // once it has ended
}

// begin types a command in a folder below the user's.
func (f *federation) begin(dir, line string) *command {
	f.Helper()
	f.typed++
	c := &command{federation: f, out: fmt.Sprintf("out-%d", f.typed), ended: make(chan struct{})}
	f.write(c.out, "")
	standin, err := filepath.Abs("standin")
	f.must(err)
	spec := map[string]any{
		"Image": image, "User": "0:0", "WorkingDir": filepath.Join(f.home, dir),
		"Env": []string{
			"HOME=" + f.home, "PATH=/cloudshare:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH=/standin", "PYTHONDONTWRITEBYTECODE=1",
			"CLOUDSHARE_ADDR=" + f.sites[0].URL.String(), "CLOUDSHARE_API_TOKEN_FILE=" + filepath.Join(f.home, "token"),
		},
		"Cmd": []string{"/bin/bash", "-c", `exec >"$0" 2>&1; eval "$1"`, filepath.Join(f.home, c.out), line},
		"HostConfig": map[string]any{"NetworkMode": "host", "Binds": []string{
			f.home + ":" + f.home, standin + ":/standin:ro", filepath.Dir(solo.Binary) + ":/cloudshare:ro",
		}},
	}
	var made struct {
		ID string `json:"Id"`
	}
	c.must(c.call("create", spec, &made))
	c.id = made.ID
	c.must(c.call(c.id+"/start", nil, nil))
	go c.wait()
	return c
}

// call asks the engine something of containers.
func (c *command) call(path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	answer, err := c.engine.Call(c.Context(), http.MethodPost, "/v1.41/containers/"+path, bytes.NewReader(body))
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// wait waits for the command's end, or the test's.
func (c *command) wait() {
	defer close(c.ended)
	var ended struct{ StatusCode int }
	if err := c.call(c.id+"/wait", nil, &ended); err != nil && c.Context().Err() == nil {
		c.Errorf("wait for a command: %v", err)
		ended.StatusCode = -1
	}
	c.code = ended.StatusCode
}

// said returns what the command has said.
func (c *command) said() string { return strings.TrimSpace(c.read(c.out)) }

// end waits for the command's end and returns its exit code.
func (c *command) end() int {
	<-c.ended
	return c.code
}

// await waits until there is no error any more; the command's own end ends it, too.
func (c *command) await(what string, cond func() error) {
	c.Helper()
	c.sites[0].Await(what, func() error {
		err := cond()
		select {
		case <-c.ended:
			if err != nil {
				err = testbed.Final(fmt.Errorf("%w; the command ended with code %d:\n%s", err, c.code, c.said()))
			}
		default:
		}
		return err
	})
}
