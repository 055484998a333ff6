package command

import (
	"math"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// Genesis creates the federation. It is valid only as the very first command.
type Genesis struct {
	Federation [16]byte // uuid
	CreatedMs  int64    // unix milliseconds, for people to read
	Seed       uint64   // of the replayable random choice of machines
	Params     Params
	// Founder is the key of the command's site, which is the first member and elector. Zero: the federation has no
	// roster, and any name registers, as in simulations.
	Founder signature.Key
}

// SetParams changes the federation's parameters.
type SetParams struct{ Params Params }

// Raise puts an apply version in force from the next entry on. It is refused as VersionTooNew while the
// broker of a site that has not left does not know the version. A version that is already in force, or
// an older one, changes nothing.
type Raise struct{ Version uint32 }

// FirstVersion is the apply version that every federation begins with, whatever its founder knows: a
// genesis means the same to all.
const FirstVersion = 1

// Recover begins a new epoch: the command's site continues without the voters that are permanently lost,
// and with them perhaps the newest entries (recover.go). It is never ordered: `cloudshare recover` applies
// it to the newest surviving copy while its broker is stopped. Its ID has Incarnation 0 and Seq 0. An epoch
// that has already begun changes nothing.
type Recover struct {
	Epoch uint64 // 1 … MaxEpoch, greater than that of the epoch it ends
	// HoldMs is how long nothing is assigned, in the log's time; the lease and the margin are always
	// waited for. Longer is for attempts with a stop bound that only the lost voters may know of.
	HoldMs int64
}

// Validate checks the bounds.
func (b *Genesis) Validate() error {
	return firstError(within("created_ms", b.CreatedMs, 0, MaxUnixMs), b.Params.Validate())
}

// Validate checks the parameters.
func (b *SetParams) Validate() error { return b.Params.Validate() }

// Validate checks that the version exists.
func (b *Raise) Validate() error {
	return within("version", int64(b.Version), FirstVersion, math.MaxUint32)
}

// Validate checks that the epoch exists and that the wait is bounded.
func (b *Recover) Validate() error {
	return firstError(within("epoch", int64(b.Epoch), 1, MaxEpoch), within("hold_ms", b.HoldMs, 0, MaxTimeoutMs))
}
