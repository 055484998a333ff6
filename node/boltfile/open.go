// Package boltfile opens bbolt files so that a damaged one is an error. bbolt
// trusts what it maps: a page that is not what it should be is a panic, when it
// opens a file even on a goroutine of its own, where nobody can recover it. So
// the tree is checked before bbolt sees it. It knows no broker and no raft.
package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
)

// ErrDamaged is about a file that is not what bbolt wrote; the text names file and page.
var ErrDamaged = errors.New("damaged")

// Open checks the file at path, then has open open it; a panic of open is
// ErrDamaged, too. A file that is missing, empty, or locked by another process is
// for open to judge.
//
// Covered is damage of the tree (bbolt has no checksums of pages): a changed
// value is not noticed. What happens to the file while it is open is for Guard.
// After a panic bbolt may still hold the file's lock: end the process.
func Open[T any](path string, open func() (T, error)) (v T, err error) {
	if err = Check(path); err != nil {
		return v, err
	}
	err = Guard(path, func() (cause error) {
		v, cause = open()
		return cause
	})
	return v, err
}

// Guard calls use, which reads or writes the open file at path: a panic is
// ErrDamaged, and so is a fault of the mapping, as when the disk cannot read.
func Guard(path string, use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // of this goroutine
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is %w: %v", path, ErrDamaged, p)
		}
	}()
	return use()
}

// Check reads the tree of the file at path; see Open. It reads every page in use
// once.
func Check(path string) (err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check store: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil // it changes while another process has it
		}
		return fmt.Errorf("lock %s: %w", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("check store: %w", err)
	}
	if info.Size() == 0 {
		return nil // a new one
	}
	if err = checkTree(f, info.Size()); err != nil {
		return fmt.Errorf("%s is %w: %w", path, ErrDamaged, err)
	}
	return nil
}
