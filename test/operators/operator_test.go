//go:build operators

package operators

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// limit of one wait: far above what a busy machine needs.
const limit = 45 * time.Second

// operator is who runs a site, at a machine of its own: a namespace, and a folder with broker.yaml and data.
type operator struct {
	*testing.T

	site, addr string
	dir, path  string
	broker     *exec.Cmd // nil: it does not run
}

func (o *operator) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatalf("%s: %v", o.site, err)
	}
}

// configure writes the site's configuration: its API is for this machine alone.
func (o *operator) configure() {
	text := fmt.Sprintf("site: %s\ndata_dir: data\npeer: %s:7701\ngossip: %s:7702\ncores: 1\nstop_tasks: true\n",
		o.site, o.addr, o.addr)
	o.must(os.WriteFile(filepath.Join(o.dir, "broker.yaml"), []byte(text), 0o600))
	o.Cleanup(func() {
		o.ends(syscall.SIGTERM)
		if text, err := os.ReadFile(filepath.Join(o.dir, "broker.log")); o.Failed() {
			o.Logf("%s: %v\n%s", o.site, err, text)
		}
	})
}

// shell is a line at the operator's machine, in its folder.
func (o *operator) shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", host(o.site), "sh", "-c", "umask 077; "+line)
	cmd.Dir = o.dir
	cmd.Env = []string{
		"PATH=" + o.path + ":" + os.Getenv("PATH"), "HOME=" + o.dir, "CLOUDSHARE_API_TOKEN_FILE=data/token",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// types runs a line, which must succeed and print what the expressions say; it returns what was printed.
func (o *operator) types(line string, want ...string) string {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), limit)
	defer cancel()
	out, err := o.shell(ctx, line).CombinedOutput()
	o.must(prints(line, string(out), err, want))
	return string(out)
}

// sees runs a line until it succeeds and prints what the expressions say.
func (o *operator) sees(line string, want ...string) {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), limit)
	defer cancel()
	o.must(testbed.Await(ctx, line, func() error {
		out, err := o.shell(ctx, line).CombinedOutput()
		return prints(line, string(out), err, want)
	}))
}

// prints tells what a line did not do.
func prints(line, out string, err error, want []string) error {
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(out) {
			err = errors.Join(err, fmt.Errorf("no %q", w))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return nil
}

// starts runs the site's broker, with more arguments.
func (o *operator) starts(args string) {
	o.Helper()
	o.broker = o.shell(context.Background(), "exec cloudshare broker --config broker.yaml "+args+" >>broker.log 2>&1")
	o.must(o.broker.Start())
}

// ends has the broker end, unless it has.
func (o *operator) ends(sig syscall.Signal) {
	if o.broker == nil {
		return
	}
	_ = o.broker.Process.Signal(sig)
	_ = o.broker.Wait()
	o.broker = nil
}

// hands gives a file to another operator, as a chat would.
func (o *operator) hands(file string, to *operator) {
	o.Helper()
	text, err := os.ReadFile(filepath.Join(o.dir, file))
	o.must(err)
	o.must(os.WriteFile(filepath.Join(to.dir, file), text, 0o600))
}
