package container

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
)

// installProgram copies the program that is every container's first process to
// where the engine finds it, unless it is there. Containers that run keep the
// one they were started with.
func installProgram(from, to string) error {
	if err := checkStatic(from); err != nil {
		return err
	}
	same, err := sameFile(from, to)
	if err != nil || same {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return fmt.Errorf("copy the first process of containers: %w", err)
	}
	return os.Rename(to+".new", to)
}

// checkStatic: an image need not have the libraries of this machine.
func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked with libraries of this machine, and containers need it, too: build it with CGO_ENABLED=0: %w", path, ErrNotStatic)
		}
	}
	return nil
}

// sameFile compares contents; b may be missing.
func sameFile(a, b string) (bool, error) {
	fb, err := os.Open(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer fb.Close()
	fa, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	bufA, bufB := make([]byte, 256<<10), make([]byte, 256<<10)
	for {
		n, errA := io.ReadFull(fa, bufA)
		m, errB := io.ReadFull(fb, bufB)
		switch {
		case !bytes.Equal(bufA[:n], bufB[:m]):
			return false, nil
		case errA != nil || errB != nil:
			return atEnd(errA) && atEnd(errB), nil
		}
	}
}

func atEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
