package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

var binary = flag.String("binary", "../../bin/cloudshare", "the program to try")

// patience is how long anything may take on a loaded machine.
const patience = time.Minute

// broker is one that takes the tokens of a provider, and a user's home.
type broker struct {
	*testing.T
	url, home, dir string
}

// startBroker runs a broker until the test ends.
func startBroker(t *testing.T, p *provider) *broker {
	t.Helper()
	b := &broker{T: t, home: t.TempDir(), dir: t.TempDir()}
	var at [3]string
	for i := range at {
		var err error
		if at[i], err = testbed.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	b.url = "http://" + at[0]
	path := filepath.Join(b.home, "broker.yaml")
	text := fmt.Sprintf("site: lab\ndata_dir: %s\nhttp: %s\npeer: %s\ngossip: %s\nbootstrap: true\noidc:\n  issuer: %s\n  audience: %s\n"+
		"  algorithms: [ES256]\n  operators: [admins]\n  users: [physics]\n", filepath.Join(b.dir, "data"), at[0], at[1], at[2], p.issuer(), clientID)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(*binary, "broker", "--config", path)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (make build makes the program)", err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	b.await("the broker is ready", func() error {
		res, err := http.Get(b.url + "/readyz")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		return nil
	})
	return b
}

// await waits until something succeeds.
func (b *broker) await(what string, try func() error) {
	b.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s: %v", what, err)
		}
	}
}

// command is the command line of the user.
func (b *broker) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.Context(), *binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_CONFIG_HOME=", "CLOUDSHARE_ADDR=", "CLOUDSHARE_API_TOKEN=", "CLOUDSHARE_CONTEXT=")
	return cmd
}

// run types a command line, which must succeed, and returns what it says.
func (b *broker) run(args ...string) string {
	b.Helper()
	out, err := b.command(args...).CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// fails types a command line that must not succeed, and returns its exit code and what it says.
func (b *broker) fails(args ...string) (int, string) {
	b.Helper()
	out, err := b.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		b.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return exit.ExitCode(), string(out)
}

// buffer is what a command that goes on has printed.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// problem is how the API refuses.
type problem struct {
	Type, Detail string
	Status       int
	header       http.Header
}

// ask asks who the holder of a token is; the problem has status 200 if the broker says it.
func (b *broker) ask(token string) problem {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/v1/whoami", nil)
	if err != nil {
		b.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	var p problem
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		b.Fatal(err)
	}
	if res.StatusCode == http.StatusOK {
		p.Detail = string(text)
	}
	p.Status, p.header = res.StatusCode, res.Header
	return p
}

// refuses asks with a token until the broker says why it does not take it: it looks at ten wrong ones a second.
func (b *broker) refuses(what, token string, status int, words string) {
	b.Helper()
	b.await(what, func() error {
		p := b.ask(token)
		if p.Status == http.StatusTooManyRequests {
			return errors.New(p.Detail)
		}
		if p.Status != status || !strings.Contains(p.Detail, words) {
			b.Errorf("%s: %d %s", what, p.Status, p.Detail)
		}
		return nil
	})
}
