package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// slowFolder is a folder behind a file system whose syncs can be made slow
// (test/slowfs).
type slowFolder struct {
	cmd   *exec.Cmd
	at    string
	delay string // the file that says by how much
}

// whyNoSlowDisks says what is missing for disks that can be made slow, "" = nothing.
func whyNoSlowDisks(program string) string {
	switch _, err := os.Stat("/dev/fuse"); {
	case os.Geteuid() != 0:
		return "a slow disk takes root: run it with sudo"
	case err != nil:
		return "a slow disk takes /dev/fuse: load the kernel's module fuse, or give it to this container"
	}
	if _, err := os.Stat(program); err != nil {
		return program + " is missing: run make bin/slowfs"
	}
	return ""
}

// mountSlow makes the folder at and mounts another one there, in dir.
func mountSlow(program, dir, at string) (*slowFolder, error) {
	s := &slowFolder{at: at, delay: filepath.Join(dir, "delay")}
	behind := filepath.Join(dir, "behind")
	if err := errors.Join(os.MkdirAll(behind, 0o700), os.MkdirAll(at, 0o700)); err != nil {
		return nil, fmt.Errorf("make a folder for a slow disk: %w", err)
	}
	if err := s.set(0); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(program, "-delay", s.delay, behind, at)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "mounted" {
		return nil, errors.Join(fmt.Errorf("%s did not mount %s: it said %q", program, at, line), s.cmd.Wait())
	}
	return s, nil
}

// set has each sync take so much longer from now on.
func (s *slowFolder) set(by time.Duration) error {
	if err := os.WriteFile(s.delay, []byte(by.String()), 0o600); err != nil {
		return fmt.Errorf("switch a slow disk: %w", err)
	}
	return nil
}

// close unmounts the folder, which ends its program.
func (s *slowFolder) close() error {
	err := syscall.Unmount(s.at, syscall.MNT_DETACH)
	if err != nil {
		err = errors.Join(fmt.Errorf("unmount %s: %w", s.at, err), s.cmd.Process.Kill())
	}
	return errors.Join(err, s.cmd.Wait())
}

// slowFolders returns the data folders of a federation to be started in dir, by site.
func slowFolders(program, dir string, sites int) (map[string]*slowFolder, error) {
	all := map[string]*slowFolder{}
	for i := range sites {
		name := "site-" + strconv.Itoa(i+1)
		s, err := mountSlow(program, filepath.Join(dir, "disks", name), filepath.Join(dir, name, "data"))
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all[name] = s
	}
	return all, nil
}

func closeAll(all map[string]*slowFolder) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
