package steps

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/executor/plan"
)

// collect brings what was left at absolute paths into the work folder. It goes on after an error, and returns the
// first.
func (r *runner) collect(list []plan.Output) error {
	var errs []error
	for i := range list {
		o := &list[i]
		if err := r.collectOne(o, filepath.Join(r.work, o.Folder(i))); err != nil {
			errs = append(errs, fmt.Errorf("output %s: %w", o.Path, err))
		}
	}
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

func (r *runner) collectOne(o *plan.Output, to string) error {
	if o.Prefix == "" {
		if o.Tree {
			return bringTree(o.Path, to)
		}
		return bring(o.Path, filepath.Join(to, plan.Single))
	}
	found, err := filepath.Glob(o.Path)
	if err != nil {
		return err
	}
	for _, path := range found {
		rel, err := filepath.Rel(o.Prefix, path)
		if err != nil || !filepath.IsLocal(rel) {
			return fmt.Errorf("%s is not below %s", path, o.Prefix)
		}
		st, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case !st.IsDir():
			err = bring(path, filepath.Join(to, rel))
		case o.Tree:
			err = bringTree(path, filepath.Join(to, rel))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bringTree brings the regular files below a folder, and those that links in it lead to. It follows no links to
// folders.
func bringTree(from, to string) error {
	st, err := os.Stat(from)
	if err != nil {
		return missing(err)
	}
	if !st.IsDir() {
		return errors.New("it is no directory, as its type says")
	}
	if from, err = filepath.EvalSymlinks(from); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if st, serr := os.Stat(path); serr != nil || !st.Mode().IsRegular() {
			return nil //nolint:nilerr // a link to nowhere, a socket: nothing that travels
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return bring(path, filepath.Join(to, rel))
	})
}

// bring makes a file of the task another name in the work folder, or a copy of it there.
func bring(from, to string) error {
	target, err := filepath.EvalSymlinks(from)
	if err != nil {
		return missing(err)
	}
	st, err := os.Stat(target)
	switch {
	case err != nil:
		return missing(err)
	case st.IsDir():
		return errors.New("it is a directory: give its type as DIRECTORY")
	case !st.Mode().IsRegular():
		return errors.New("it is no regular file")
	}
	if err = os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if os.Link(target, to) == nil {
		return nil
	}
	return copyFile(target, to, st.Mode()&0o777|0o600)
}

// missing words that there is no such file.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the task left no such file")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "lstat "))
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
