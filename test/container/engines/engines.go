// Package engines starts real container engines for tests: a dockerd or a Podman
// service of one's own, in a private folder, without a service manager and
// without a network. It needs root and what `make need-engines` looks for; what
// is missing fails a test.
package engines

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of engines.
const (
	Docker = "docker"
	Podman = "podman"
)

// Image is in every engine: a static busybox and nothing else.
const Image = "cloudshare.test/busybox:latest" // Podman 4 imports to no other tag

// startup bounds every wait for an engine.
const startup = 2 * time.Minute

// Engine is one that runs.
type Engine struct {
	Kind     string
	Address  string // unix:///…
	dir      string
	registry string
	flags    []string
	cmd      *exec.Cmd
	gone     chan struct{}
	http     *http.Client
}

// Option of an engine.
type Option func(*Engine)

// Flags are added to the engine's own.
func Flags(flags ...string) Option { return func(e *Engine) { e.flags = flags } }

// Insecure names a registry on the loopback; Docker asks for no such name.
func Insecure(registry string) Option { return func(e *Engine) { e.registry = registry } }

// Start starts an engine with the image in it; it is stopped, and all of it
// removed, when the test ends.
func Start(t testing.TB, kind string, options ...Option) *Engine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a container engine needs root")
	}
	dir, err := os.MkdirTemp("/tmp", "cs-engine-") //nolint:usetesting // the paths of sockets must be short, and mounts go first
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Kind: kind, dir: dir, registry: "127.0.0.1", Address: "unix://" + filepath.Join(dir, "sock")}
	for _, o := range options {
		o(e)
	}
	e.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "sock"))
		},
	}}
	t.Cleanup(func() { e.close(t) })
	if err = e.configure(); err == nil {
		if err = e.Run(t.Context()); err == nil {
			err = e.Import(t.Context(), Image, "ENV PATH=/bin")
		}
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", kind, err, e.log())
	}
	return e
}

// configure writes what a Podman service reads: it takes no flags for that.
func (e *Engine) configure() error {
	conf := "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n" +
		"[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\nlock_type = \"file\"\n" + // else two of them share their locks
		"[network]\nnetwork_config_dir = \"" + e.dir + "/net\"\n"
	registries := "unqualified-search-registries = []\n[[registry]]\nlocation = \"" + e.registry + "\"\ninsecure = true\n"
	policy := `{"default": [{"type": "insecureAcceptAnything"}]}`
	var errs []error
	for name, text := range map[string]string{"containers.conf": conf, "registries.conf": registries, "policy.json": policy} {
		errs = append(errs, os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}

func (e *Engine) command() *exec.Cmd {
	at := func(name string) string { return filepath.Join(e.dir, name) }
	if e.Kind == Podman {
		args := []string{"--root", at("data"), "--runroot", at("run"), "--tmpdir", at("tmp"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"}
		args = append(args, e.flags...)
		cmd := exec.Command("podman", append(args, "system", "service", "--time=0", e.Address)...)
		cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+at("containers.conf"), "CONTAINERS_REGISTRIES_CONF="+at("registries.conf"))
		return cmd
	}
	args := []string{
		"--data-root", at("data"), "--exec-root", at("exec"), "-p", at("pid"), "-H", e.Address,
		"--iptables=false", "--bridge=none", "--exec-opt", "native.cgroupdriver=cgroupfs",
	}
	return exec.Command("dockerd", append(args, e.flags...)...)
}

// Run starts the engine and waits until it answers.
func (e *Engine) Run(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if !e.hasChild() { // dockerd takes one that nobody has reaped yet for alive, too
		_ = os.Remove(e.childFile())
	}
	e.cmd = e.command()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = e.cmd.Start(); err != nil {
		return fmt.Errorf("start the engine: install it as `make need-engines` says: %w", err)
	}
	e.gone = make(chan struct{})
	go func() { _ = e.cmd.Wait(); close(e.gone) }()
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err = e.Call(ctx, http.MethodGet, "/_ping", nil); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the engine does not answer: %w", err)
		case <-e.gone:
			return errors.New("the engine ended")
		case <-tick.C:
		}
	}
}

// Signal tells the engine's own process something, and waits for its end if it
// is KILL or TERM.
func (e *Engine) Signal(sig syscall.Signal) error {
	if err := e.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if sig == syscall.SIGSTOP {
		return e.awaitStopped()
	}
	if sig != syscall.SIGKILL && sig != syscall.SIGTERM {
		return nil
	}
	late := time.NewTimer(startup)
	defer late.Stop()
	select {
	case <-e.gone:
	case <-late.C:
		return errors.New("the engine does not end")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for e.hasChild() {
		select {
		case <-tick.C:
		case <-late.C:
			return errors.New("the engine's containerd does not end")
		}
	}
	return nil
}

// awaitStopped waits until none of its threads runs any more: one may still answer when
// the signal has been sent.
func (e *Engine) awaitStopped() error {
	for {
		err := unix.Waitid(unix.P_PID, e.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (e *Engine) childFile() string {
	return filepath.Join(e.dir, "exec", "containerd", "containerd.pid")
}

// hasChild: dockerd's own containerd, which dies with it, is there. Another
// dockerd would take it for alive, and wait for it in vain.
func (e *Engine) hasChild() bool {
	pid, err := os.ReadFile(e.childFile())
	if err != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cmdline")
	return err == nil && bytes.Contains(b, []byte(e.dir))
}

// Call sends a request of the Docker Engine API and returns the whole answer.
func (e *Engine) Call(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPost && strings.Contains(path, "fromSrc") {
		req.Header.Set("Content-Type", "application/x-tar")
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	return b, err
}

// Import makes an image of the busybox, with lines of a Dockerfile.
func (e *Engine) Import(ctx context.Context, image string, changes ...string) error {
	fs, err := Files()
	if err != nil {
		return err
	}
	return e.ImportFiles(ctx, bytes.NewReader(fs), image, changes...)
}

// ImportFiles makes an image of the files in a tar, with lines of a Dockerfile.
func (e *Engine) ImportFiles(ctx context.Context, tar io.Reader, image string, changes ...string) error {
	repo, tag, _ := strings.Cut(image, ":")
	q := url.Values{"fromSrc": {"-"}, "repo": {repo}, "tag": {tag}, "changes": changes}
	_, err := e.Call(ctx, http.MethodPost, "/v1.41/images/create?"+q.Encode(), tar)
	return err
}

// applets of the busybox.
var applets = []string{
	"sh", "true", "false", "ls", "wc", "cat", "env", "touch", "mkdir", "chmod", "sleep", "kill", "setsid", "echo", "head",
	"dd", "yes", "id", "grep", "rm", "ps", "mknod", "mount", "ping", "seq", "nproc", "ip", "tail", "stat",
}

// Files returns those of the image, as a tar, and empty ones of these names.
func Files(more ...string) ([]byte, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("find a static busybox: %w", err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	errs := []error{
		w.WriteHeader(&tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}),
		w.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}),
		w.WriteHeader(&tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))}),
	}
	_, err = w.Write(program)
	errs = append(errs, err)
	for _, a := range applets {
		errs = append(errs, w.WriteHeader(&tar.Header{Name: "bin/" + a, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}))
	}
	for _, name := range more {
		errs = append(errs, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}))
	}
	err = errors.Join(append(errs, w.Close())...)
	return b.Bytes(), err
}

func (e *Engine) log() string {
	b, _ := os.ReadFile(filepath.Join(e.dir, "log"))
	if len(b) > 4000 {
		b = b[len(b)-4000:]
	}
	return string(b)
}

// close stops the engine and whatever it has left, and removes its folder.
func (e *Engine) close(t testing.TB) {
	t.Helper()
	if e.cmd != nil && e.cmd.Process != nil {
		_ = e.Signal(syscall.SIGCONT)
		if err := e.Signal(syscall.SIGTERM); err != nil {
			_ = e.Signal(syscall.SIGKILL)
		}
	}
	e.http.CloseIdleConnections()
	if t.Failed() {
		t.Logf("%s said:\n%s", e.Kind, e.log())
	}
	KillBelow(e.dir)
	UnmountBelow(e.dir)
	if err := os.RemoveAll(e.dir); err != nil {
		t.Errorf("%s left something behind: %v", e.Kind, err)
	}
}

// KillBelow kills the processes whose command line names a folder: an engine's
// daemons and the shims of containers.
func KillBelow(dir string) {
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		b, err := os.ReadFile(p)
		if err != nil || !bytes.Contains(b, []byte(dir)) {
			continue
		}
		var pid int
		if _, err = fmt.Sscanf(p, "/proc/%d/", &pid); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// UnmountBelow unmounts whatever is mounted in a folder.
func UnmountBelow(dir string) {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return
	}
	var points []string
	for l := range strings.Lines(string(b)) {
		if f := strings.Fields(l); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			points = append(points, f[1])
		}
	}
	slices.Sort(points)
	for _, p := range slices.Backward(points) {
		_ = unix.Unmount(p, unix.MNT_DETACH)
	}
}
