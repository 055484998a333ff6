package command

// An entry number is its epoch and the entry's place, so all that is numbered by
// entries (tokens, events, current reads) is greater in a later epoch than
// anything in an earlier one, even what was ordered there and is lost.
const (
	epochShift = 40 // a thousand entries a second for 34 years
	// MaxEpoch keeps entry numbers within 2⁵³, exact where numbers are floats.
	MaxEpoch = 1<<13 - 1
)

// EpochOf returns the epoch of an entry.
func EpochOf(index uint64) uint64 { return index >> epochShift }

// StartOf returns the number before an epoch's first entry.
func StartOf(epoch uint64) uint64 { return epoch << epochShift }
