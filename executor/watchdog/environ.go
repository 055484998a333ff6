package watchdog

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// DefaultPath is a task's PATH unless its job or its image says otherwise.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// WorkdirVar marks every process of an attempt with its private directory, so
// that leftovers of a killed supervisor can be found.
const WorkdirVar = "CLOUDSHARE_WORKDIR"

// Environ returns a task's whole environment, sorted: a few basics, base ("K=V", of
// its image), what the job declares, then what the contract promises. Nothing of
// the broker's own. work is the private directory.
func Environ(t executor.Task, work string, base ...string) ([]string, error) {
	env := map[string]string{"PATH": DefaultPath, "HOME": work, "TMPDIR": work, "LANG": "C.UTF-8"}
	for _, kv := range base {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	for k, v := range t.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			whole := fmt.Errorf("environment variable %q cannot be set: empty name, '=' or a NUL", k)
			return nil, &private{"an environment variable cannot be set: empty name, '=' or a NUL", whole}
		}
		env[k] = v
	}
	if t.Env[executor.IndexVar] == "" {
		env[executor.IndexVar] = strconv.FormatUint(uint64(t.ID.Task), 10)
	}
	maps.Copy(env, map[string]string{
		"CLOUDSHARE_JOB":     t.Job,
		"CLOUDSHARE_ATTEMPT": strconv.FormatUint(uint64(t.Attempt), 10),
		"CLOUDSHARE_TOKEN":   strconv.FormatUint(t.Token, 10),
		"CLOUDSHARE_SITE":    t.Site,
		"CLOUDSHARE_OWNER":   t.Owner,
		WorkdirVar:           work,
	})
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out, nil
}

// errNoCommand: nothing of that name can be run; a shell's 127.
var errNoCommand = errors.New("no such command")

// LookPath finds a command by the task's own PATH. A name with a slash is
// taken from the task's directory, where it will be run. If it may be in a folder that
// cannot be looked into, as on a disk with errors, the error is a Trouble.
func LookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	var odd error
	for _, dir := range filepath.SplitList(path) {
		// Relative entries would mean the supervisor's directory, not the task's.
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		st, err := os.Stat(file)
		if err == nil && !st.IsDir() && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		if err != nil && !isOwnError(err) {
			odd = err
		}
	}
	if odd != nil {
		return "", &Trouble{hide(odd)}
	}
	return "", hide(fmt.Errorf("%w %q in PATH %s", errNoCommand, name, path))
}
