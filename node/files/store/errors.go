package store

import (
	"errors"
	"fmt"
	"syscall"
)

// Errors of this package.
var (
	// ErrUnknown reports a blob that is not there, for that owner.
	ErrUnknown = errors.New("blob is not in the store")
	// ErrDamaged reports a blob whose bytes are not those of its hash any more, or cannot be read. It stays so until
	// it is put again.
	ErrDamaged = errors.New("blob is damaged")
	// ErrFull reports that the space's quota or the disk has no room.
	ErrFull = errors.New("store of files is full")
	// ErrTooLarge reports content beyond the limit that was given.
	ErrTooLarge = errors.New("content is too large")
	// ErrWrongHash reports bytes that are not those of the hash, or not so many.
	ErrWrongHash = errors.New("content has another hash or size than was said")
	// ErrIncomplete reports a partial blob that lacks pieces.
	ErrIncomplete = errors.New("pieces are missing")
	// ErrBusy reports that another one fills the same blob, or that too many files are open: try again later.
	ErrBusy = errors.New("busy")
	// ErrOwner reports a name that no owner may have.
	ErrOwner = errors.New("name of an owner is refused")
	// ErrClosed reports a store, reader or partial blob that is closed.
	ErrClosed = errors.New("closed")
)

// wrap words an error of a file operation: what was done to what. A full disk is ErrFull.
func wrap(what string, k key, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, k, asFull(err))
}

// isDiskFull reports whether the disk, or what its user may have of it, has no room: what goes elsewhere makes some.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// asFull adds ErrFull to an error that says that there is no room: on the disk, for the user, or in one file.
func asFull(err error) error {
	if errors.Is(err, ErrFull) {
		return err
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return fmt.Errorf("%w: %w (make room on the file system of data_dir)", ErrFull, err)
		}
	}
	return err
}
