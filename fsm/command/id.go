package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// JobID identifies a job by its owner's site and that site's number for it. It is written "site-1.42";
// a task is "site-1.42/7".
type JobID struct {
	Site string
	Num  uint64
}

// ErrBadID is returned for text that is not a site, job or task id.
var ErrBadID = errors.New("malformed id")

// ValidSite reports whether s can be a site's name: a DNS label in lower case, that is
// [a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?
func ValidSite(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// String returns the form that ParseJobID reads.
func (id JobID) String() string { return id.Site + "." + strconv.FormatUint(id.Num, 10) }

// ParseJobID reads "site.number".
func ParseJobID(s string) (JobID, error) {
	site, num, ok := strings.Cut(s, ".")
	n, err := strconv.ParseUint(num, 10, 64)
	if !ok || err != nil || n == 0 || !ValidSite(site) || strconv.FormatUint(n, 10) != num {
		return JobID{}, fmt.Errorf("%w: %.80q is not SITE.NUMBER", ErrBadID, s)
	}
	return JobID{Site: site, Num: n}, nil
}

// An entry number combines the epoch and the entry's place in it. So everything numbered by entries
// (tokens, events, current reads) is greater in a later epoch than anything in an earlier one, even
// than what was ordered there and is lost.
const (
	epochShift = 40 // a thousand entries a second for 34 years
	// MaxEpoch keeps entry numbers within 2⁵³, where floats are exact.
	MaxEpoch = 1<<13 - 1
)

// EpochOf returns the epoch of an entry.
func EpochOf(index uint64) uint64 { return index >> epochShift }

// StartOf returns the number just before an epoch's first entry.
func StartOf(epoch uint64) uint64 { return epoch << epochShift }
