package watchdog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// TestFailuresDoNotTellTheCommand: why a task did not begin goes to all members, so it names neither its command nor
// its variables; its own stderr does.
func TestFailuresDoNotTellTheCommand(t *testing.T) {
	_, absent := LookPath("secret-tool", []string{"PATH=/opt/secret-project/bin"})
	_, unset := Environ(executor.Task{Env: map[string]string{"secret=name": "x"}}, "/work")
	start := func(err error) error {
		named := &os.PathError{Op: "fork/exec", Path: "/opt/secret/tool", Err: err}
		return StartError(executor.Task{Command: []string{"./secret-tool"}}, "./secret-tool", named)
	}
	for _, c := range []struct {
		want string
		err  error
	}{
		{"its command is not there", absent},
		{"an environment variable cannot be set: empty name, '=' or a NUL", unset},
		{"its command may not be run", start(unix.EACCES)},
		{"its command cannot be run: exec format error", start(unix.ENOEXEC)},
		{"not started, by its site's trouble: its command cannot be run: input/output error", start(unix.EIO)},
		{"its command cannot be run", hide(errors.New("secret"))},
	} {
		want, err := c.want, c.err
		file, oops := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if oops != nil {
			t.Fatal(oops)
		}
		defer file.Close()
		w := &Watch{Out: &Output{Files: [2]*os.File{nil, file}}}
		w.tellWhole(err)
		told, oops := os.ReadFile(file.Name())
		if got := NotBegun(err).Detail; got != want || oops != nil {
			t.Errorf("all members read %q, want %q; %v", got, want, oops)
		}
		if trouble := new(Trouble); !errors.As(err, &trouble) && !strings.Contains(string(told), "secret") {
			t.Errorf("of %q its stderr tells %q", want, told)
		}
	}
}
