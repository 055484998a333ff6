package command

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrOutOfBounds is wrapped by every Validate error. The error names the field, its value and the bound.
var ErrOutOfBounds = errors.New("out of bounds")

// BoundError reports a number that is out of bounds.
type BoundError struct {
	Field            string
	Value, Low, High int64 // both ends are allowed
}

// Error implements error.
func (e *BoundError) Error() string {
	return fmt.Sprintf("%v: %s %d is not in %d…%d", ErrOutOfBounds, e.Field, e.Value, e.Low, e.High)
}

// Unwrap returns ErrOutOfBounds, so that errors.Is finds it.
func (*BoundError) Unwrap() error { return ErrOutOfBounds }

// firstError returns the first error, or nil. cmp.Or would do the same but calls the runtime for each.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// within checks a number. It is small enough to be inlined: decoding calls it for every number.
func within(field string, v, low, high int64) error {
	if v < low || v > high {
		return outside("", field, v, low, high)
	}
	return nil
}

func outside(prefix, field string, v, low, high int64) error {
	return &BoundError{prefix + field, v, low, high}
}

// CheckResources returns an error if a part of the resources is out of bounds; whose is put before the
// field's name.
func CheckResources(whose string, r Resources) error {
	switch {
	case r.MilliCPU < 0 || r.MilliCPU > MaxMilliCPU:
		return outside(whose, "milli_cpu", r.MilliCPU, 0, MaxMilliCPU)
	case r.MemMiB < 0 || r.MemMiB > MaxMemMiB:
		return outside(whose, "mem_mib", r.MemMiB, 0, MaxMemMiB)
	case r.GPU < 0 || r.GPU > MaxGPU:
		return outside(whose, "gpu", r.GPU, 0, MaxGPU)
	}
	return nil
}

func inAttempts(field string, refs []AttemptRef, most int64) error {
	if err := within(field, int64(len(refs)), 0, most); err != nil {
		return err
	}
	for i := range refs {
		if err := refs[i].Validate(); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

func inAddresses(http, peer, gossip string) error {
	return firstError(within("bytes of http", int64(len(http)), 0, MaxAddress),
		within("bytes of peer", int64(len(peer)), 0, MaxAddress),
		within("bytes of gossip", int64(len(gossip)), 0, MaxAddress))
}

func inJob(id JobID) error {
	if id.Num == 0 {
		return fmt.Errorf("%w: job %.80q has number 0: jobs are numbered from 1", ErrOutOfBounds, id.Site)
	}
	return inSite("job's site", id.Site)
}

func inSite(field, s string) error {
	if !ValidSite(s) {
		return fmt.Errorf("%w: %s %.80q is no site name (a DNS label in lower case)", ErrOutOfBounds, field, s)
	}
	return nil
}

// CheckSites checks that names are those of sites, sorted and unique.
func CheckSites(field string, list []string) error {
	if err := within(field, int64(len(list)), 0, MaxSiteNames); err != nil {
		return err
	}
	for i, s := range list {
		if err := inSite(field, s); err != nil {
			return err
		}
		if i > 0 && list[i-1] >= s {
			return fmt.Errorf("%w: %s: %q, %q are not sorted and unique", ErrOutOfBounds, field, list[i-1], s)
		}
	}
	return nil
}

// CheckMachineName checks that a machine may have this name.
func CheckMachineName(name string) error {
	if err := within("bytes of a machine's name", int64(len(name)), 1, MaxMachineName); err != nil {
		return err
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return fmt.Errorf("%w: machine name %q holds more than printable ASCII without spaces", ErrOutOfBounds, name)
		}
	}
	return nil
}

// Clip makes s fit for a detail or reason: one line of valid UTF-8 with at most MaxDetail bytes.
func Clip(s string) string {
	if len(s) > MaxDetail {
		s = s[:MaxDetail]
		for range utf8.UTFMax - 1 { // do not cut within a rune
			if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	s = strings.ToValidUTF8(s, "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
