package staging

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
)

// taken is a sink that keeps what it gets, and does something at each file.
type taken struct {
	files   map[string]string
	order   []string
	skipped []string
	at      func(f executor.OutputFile, r io.Reader) error
}

func (s *taken) File(f executor.OutputFile, r io.Reader) error {
	if s.at != nil {
		if err := s.at(f, r); err != nil {
			return err
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.files[f.Path] = string(b)
	s.order = append(s.order, f.Path)
	return nil
}

func (s *taken) Skipped(name, why string) { s.skipped = append(s.skipped, name+": "+why) }

func collect(t testing.TB, dir string, at func(executor.OutputFile, io.Reader) error, globs ...string) (*taken, error) {
	s := &taken{files: map[string]string{}, at: at}
	return s, Collect(t.Context(), dir, executor.Outputs{Paths: globs}, AnyOwner, s)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// TestChangesAreNoticed: who is wrong about a task's death gets an error, not another file.
func TestChangesAreNoticed(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"grows":   func(p string) error { return os.WriteFile(p, []byte("longer than it was"), 0o600) },
		"shrinks": func(p string) error { return os.Truncate(p, 1) },
		"changes": func(p string) error { return os.WriteFile(p, []byte("CONTENT"), 0o600) },
		"is another file": func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("content"), 0o600), os.Rename(p+"2", p))
		},
		"becomes a link": func(p string) error { return errors.Join(os.Remove(p), os.Symlink("/etc/passwd", p)) },
		"becomes a pipe": func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o600)) },
		"goes":           os.Remove,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a"), "first")
		write(t, filepath.Join(dir, "b"), "content")
		s, err := collect(t, dir, func(f executor.OutputFile, _ io.Reader) error {
			if f.Path == "a" { // b is listed and not open
				return change(filepath.Join(dir, "b"))
			}
			return nil
		}, "./")
		switch got := s.files["b"]; name {
		case "grows", "shrinks", "changes": // the same file, as it is when it is opened
			if err != nil || strings.Contains(got, "content") {
				t.Errorf("before it is open it %s: %q, %v", name, got, err)
			}
		default:
			if !errors.Is(err, executor.ErrOutputChanged) || got != "" {
				t.Errorf("before it is open it %s: %q, %v", name, got, err)
			}
		}
		if name == "goes" || strings.HasPrefix(name, "becomes") || name == "is another file" {
			continue // what is open stays as it is
		}
		write(t, filepath.Join(dir, "b"), "content")
		_, err = collect(t, dir, func(f executor.OutputFile, _ io.Reader) error {
			if f.Path == "b" {
				return change(filepath.Join(dir, "b"))
			}
			return nil
		}, "./")
		if !errors.Is(err, executor.ErrOutputChanged) {
			t.Errorf("while it is open it %s: %v", name, err)
		}
	}
}

// TestRegularFilesOnly: a socket, a device and a pipe are never opened; who has named one hears what it is.
func TestRegularFilesOnly(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"socket": func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) },
		"device": func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) }, // endless zeros
		"disk":   func(p string) error { return unix.Mknod(p, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 200))) },
		"pipe":   func(p string) error { return unix.Mkfifo(p, 0o600) },
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "good"), "x")
		if err := create(filepath.Join(dir, "other")); errors.Is(err, unix.EPERM) {
			continue // only root makes devices
		} else if err != nil {
			t.Fatal(err)
		}
		s, err := collect(t, dir, nil, "./")
		if err != nil || !slices.Equal(s.order, []string{"good"}) || len(s.skipped) != 1 {
			t.Errorf("%s: collected %v, skipped %v, %v", name, s.order, s.skipped, err)
		}
		_, err = collect(t, dir, nil, "other")
		missing, ok := errors.AsType[*executor.MissingOutputError](err)
		if !ok || missing.Glob != "other" || missing.Why == "" {
			t.Errorf("%s that is named: %v", name, err)
		}
	}
}

// TestNoMountIsEntered: what is mounted in the folder is none of it.
func TestNoMountIsEntered(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good"), "x")
	mount := filepath.Join(dir, "mount")
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("/etc", mount, "", unix.MS_BIND, ""); errors.Is(err, unix.EPERM) {
		return // only root can
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }()
	s, err := collect(t, dir, nil, "./")
	if err != nil || !slices.Equal(s.order, []string{"good"}) || len(s.skipped) != 1 {
		t.Errorf("collected %v, skipped %v, %v", s.order, s.skipped, err)
	}
	if _, err = collect(t, dir, nil, "mount/passwd"); err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("a file of the mount: %v", err)
	}
}

// TestOtherOwners: a file of another user is none of the task's.
func TestOtherOwners(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mine"), "x")
	s := &taken{files: map[string]string{}}
	err := Collect(t.Context(), dir, executor.Outputs{Optional: []string{"./"}}, os.Getuid()+1, s)
	if err != nil || len(s.files) > 0 || len(s.skipped) != 1 {
		t.Errorf("collected %v, skipped %v, %v", s.files, s.skipped, err)
	}
}

// TestManyNamesAreBounded: a hundred thousand files and no more, and none of them is given if
// there are more.
func TestManyNamesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 120 {
		write(t, filepath.Join(dir, fmt.Sprintf("f%03d", i)), "")
		if err := os.Symlink("x", filepath.Join(dir, fmt.Sprintf("l%03d", i))); err != nil {
			t.Fatal(err)
		}
	}
	s := &taken{files: map[string]string{}}
	err := Collect(t.Context(), dir, executor.Outputs{Paths: []string{"./"}, MaxFiles: 119}, AnyOwner, s)
	if bound, ok := errors.AsType[*executor.OutputBoundError](err); !ok || bound.Most != 119 || len(s.files) > 0 {
		t.Errorf("got %v with %d files", err, len(s.files))
	}
	if s, err = collect(t, dir, nil, "./"); err != nil || len(s.order) != 120 || len(s.skipped) != executor.MaxSkipped {
		t.Errorf("got %v with %d files, %d skipped", err, len(s.order), len(s.skipped))
	}
}

// TestHugeSparseFiles: their length counts, and cannot wrap.
func TestHugeSparseFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(f.Truncate(1<<43), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	s := &taken{files: map[string]string{}}
	err := Collect(t.Context(), dir, executor.Outputs{Paths: []string{"*"}, MaxBytes: 1 << 40}, AnyOwner, s)
	if bound, ok := errors.AsType[*executor.OutputBoundError](err); !ok || bound.What != "bytes" || len(s.files) > 0 {
		t.Errorf("got %v", err)
	}
}

// TestUnreadableIsOpenedUp: an owner's own files and folders without any right.
func TestUnreadableIsOpenedUp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "file")
	write(t, path, "x")
	for _, p := range []string{path, filepath.Dir(path), filepath.Dir(filepath.Dir(path)), dir} {
		if err := os.Chmod(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = os.Chmod(dir, 0o700) }()
	if s, err := collect(t, dir, nil, "*/*/file"); err != nil || s.files["a/b/file"] != "x" {
		t.Errorf("got %v, %v", s.files, err)
	}
}

// TestCollectGivesWhatGlobsName: of any tree, exactly the regular files that a glob matches, in order, name by name.
func TestCollectGivesWhatGlobsName(t *testing.T) {
	root := t.TempDir()
	n := 0
	name := rapid.SampledFrom([]string{"a", "a-", "b", ".c", "d.csv", "e-", "f"})
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(root, fmt.Sprint(n))
		write(t, filepath.Join(dir, "z"), "z")
		var files []string
		for range rapid.IntRange(0, 12).Draw(rt, "files") {
			path := strings.Join(rapid.SliceOfN(name, 1, 4).Draw(rt, "path"), "/")
			whole := filepath.Join(dir, path)
			if os.MkdirAll(filepath.Dir(whole), 0o700) != nil {
				continue // a file is there
			}
			if f, err := os.OpenFile(whole, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
				_, _ = f.WriteString(path)
				f.Close()
				files = append(files, path)
			}
		}
		text := rapid.SampledFrom([]string{"*", "*/*", "a/", "*/", ".*", "?/b/", "[a-d]*", "./", "a/*/d.csv", "*.csv", ".c/.c"}).Draw(rt, "glob")
		g, err := executor.ParseGlob(text)
		if err != nil {
			rt.Fatal(err)
		}
		var want []string
		for _, p := range append(files, "z") {
			if g.Match(p) {
				want = append(want, p)
			}
		}
		slices.SortFunc(want, func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
		s := &taken{files: map[string]string{}}
		if err = Collect(t.Context(), dir, executor.Outputs{Optional: []string{text}}, AnyOwner, s); err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(s.order, want) {
			rt.Fatalf("%s of %v: %v, want %v", text, files, s.order, want)
		}
		for path, content := range s.files {
			if content != path {
				rt.Fatalf("%s holds %q", path, content)
			}
		}
	})
}
