package executortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// program returns the hostile task that is a program: the file that CLOUDSHARE_ATTACK
// names, for users that cannot build one, else it is built, once.
var program = sync.OnceValues(func() ([]byte, error) {
	if path := os.Getenv("CLOUDSHARE_ATTACK"); path != "" {
		return os.ReadFile(path)
	}
	dir, err := os.MkdirTemp("", "attack-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "attack")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-o", path,
		"github.com/cloudshare/cloudshare/executor/executortest/attack")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the hostile task: %w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// SharedFolder makes the folder of a hostile test that its tasks see, of any user: they
// must see nothing else of the machine that they could change.
func SharedFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// attack has a stranger's task try attacks by their names: none may work.
func attack(names ...string) func(*Rig) {
	return func(r *Rig) {
		content, err := program()
		r.Must(err)
		path := filepath.Join(filepath.Dir(r.fifo()), "attack")
		r.Must(errors.Join(os.WriteFile(path, content, 0o600), os.Chmod(path, 0o755)))
		if out := r.said(r.stranger("exec " + path + " " + strings.Join(names, " "))); out != "end\n" {
			r.Errorf("worked: %q", strings.Fields(strings.TrimSuffix(out, "end\n")))
		}
	}
}

// hostileTerm: a task that asks whoever watches it to end gets nothing by it.
func hostileTerm(r *Rig) {
	for _, sig := range []string{"TERM", "INT"} {
		res := r.run(r.stranger("kill -" + sig + " $PPID; kill -" + sig + " 1; sleep 0.3; exit 7"))
		if res.Cause != executor.Exited || res.ExitCode != 7 {
			r.Errorf("%s: got %+v, want exit code 7", sig, res)
		}
	}
}

// hostileBomb: a fork bomb ends at its timeout with all of its processes, and meanwhile
// another task runs.
func hostileBomb(r *Rig) {
	fifo := r.fifo()
	gone := r.holders(fifo)
	t := r.stranger("exec 9>" + fifo + " 2>/dev/null; bomb() { bomb | bomb & }; bomb; " + forever)
	t.Timeout = 2 * time.Second
	r.Begin(t)
	r.AwaitRunning(t.ID)
	other := r.stranger("echo works")
	other.Owner = "site-8"
	if out := r.said(other); out != "works\n" {
		r.Errorf("beside a fork bomb another task said %q", out)
	}
	if res := r.AwaitEnd(t.ID); res.Cause != executor.TimedOut && res.Cause != executor.Exited {
		r.Errorf("got %+v, want it ended at its timeout", res)
	}
	r.awaitGone(gone)
}

// hostileForge: a task that writes into whatever it can find of those who watch it does
// not change how its end is told.
func hostileForge(r *Rig) {
	forge := `noise=$(head -c 49152 /dev/zero | tr '\0' x)
for f in /.cloudshare/* /.cloudshare/*/* /proc/1/fd/* ../* ../../journal; do
[ -f $f ] || continue
case $f in */stdout|*/stderr) continue;; esac
{ echo '{"end":{"cause":1,"exit":0}}'; echo $noise; echo $noise; } >>$f
mv $f $f.old; rm -f $f
done 2>/dev/null
exit 7`
	if res := r.run(r.stranger(forge)); res.Cause != executor.Exited || res.ExitCode != 7 {
		r.Errorf("got %+v, want exit code 7", res)
	}
}

// hostileFiles: many files, and folders deeper than a path may be long, cost nobody
// anything but their own: the next task finds none, and the site starts again.
func hostileFiles(r *Rig) {
	files := r.many(600)
	deep := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do : >f$i; i=$((i+1)); done
i=0; while [ $i -lt %d ]; do mkdir deep-folder; cd deep-folder; i=$((i+1)); done; :`, files, min(files, 400))
	res := r.run(r.stranger(deep)) // a look at its scratch may find it meanwhile
	if res.Cause != executor.Exited || res.ExitCode != 0 && !strings.Contains(res.Detail, "over its scratch") {
		r.Errorf("got %+v, want a clean exit, or an end for its scratch", res)
	}
	if out := r.said(r.stranger("ls -A | head")); out != "" {
		r.Errorf("the next task finds %q", out)
	}
	r.reopen()
	if out := r.said(r.stranger("echo works")); out != "works\n" {
		r.Errorf("after a restart a task said %q", out)
	}
}

// hostileFlood: output as fast as it can be written stays within its bound, and ends with
// its task.
func hostileFlood(r *Rig) {
	t := r.stranger("exec yes 0123456789012345678901234567890123456789012345678901234567890123456789")
	t.Timeout = time.Second
	if res := r.run(t); res.Cause != executor.TimedOut {
		r.Errorf("got %+v, want it ended at its timeout", res)
	}
	rc, err := r.Logs(r.Context(), t.ID, "stdout", false)
	r.Must(err)
	defer rc.Close()
	n, err := io.Copy(io.Discard, rc)
	r.Must(err)
	if most := int64(65 << 20); n > most { // the default of attempts.Keeping, and a marker
		r.Errorf("%d bytes of output are kept, want at most %d", n, most)
	}
	if out := r.said(r.stranger("echo works")); out != "works\n" {
		r.Errorf("after a flood a task said %q", out)
	}
}

// HostileScratch is what a handler of the suite of hostile tasks lets a stranger's have on the disk, in bytes.
const HostileScratch = 32 << 20

// hostileFill: a task that writes to the disk without end, wherever it may, ends by its own fault, and what it wrote
// goes with it.
func hostileFill(r *Rig) {
	const fill = `i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero >%s/fill$i; i=$((i+1)); done; while :; do sleep 1; done`
	for _, folder := range []string{".", "/tmp"} {
		res := r.run(r.stranger(fmt.Sprintf(fill, folder)))
		if res.Cause != executor.Exited || res.ExitCode != 137 || !strings.Contains(res.Detail, "over its scratch: more than 32Mi") {
			r.Errorf("in %s: got %+v, want an end for its scratch", folder, res)
		}
	}
	if out := r.said(r.stranger("ls -A . /tmp | grep -c fill; echo works")); out != "0\nworks\n" {
		r.Errorf("the next task said %q", out)
	}
}

// hostileSuid: a program that is set-user-id does not run as somebody else.
func hostileSuid(r *Rig) {
	out := r.said(r.stranger(`cp $(command -v id) me 2>/dev/null && chmod 6755 me && ./me -u >out 2>/dev/null; id -u >own
[ ! -s out ] || cmp -s out own || echo changed
for p in su passwd mount; do p=$(command -v $p) && [ -u $p ] && $p -c id root </dev/null 2>/dev/null; done; echo end`))
	if out != "end\n" {
		r.Errorf("got %q", out)
	}
}
