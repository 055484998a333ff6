// Package invitation is the text by which a member lets one new site join its federation: what the new
// site's operator is sent, and hands to `cloudshare broker --join`.
//
// The text is a secret until it is used: it holds the private key that signs the admission of one site, under
// one name, until it expires. Who may join, and whether the invitation was used before, the federation's state
// decides (package fsm); nothing of that is in the text.
package invitation

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// MaxAddresses is how many addresses a text may name.
const MaxAddresses = 8

// Invitation is for one new site.
type Invitation struct {
	Federation [16]byte
	Site       string   // the name that the new site gets
	Inviter    [16]byte // node id of the member that invites; only a broker with that key is told the rest
	// Addresses are peer addresses, host:port, through which the inviter is reached, the best first; at least one.
	Addresses []string
	// Seed is that of the invitation's Ed25519 key. The state knows its public key.
	Seed [32]byte
}

// ErrInvalid reports an Invitation that no text can hold.
var ErrInvalid = errors.New("invalid invitation")

// Validate reports the first reason why an Invitation cannot be written.
func (v *Invitation) Validate() error {
	switch {
	case v.Federation == [16]byte{}:
		return fmt.Errorf("%w: no federation", ErrInvalid)
	case !command.ValidSite(v.Site):
		return fmt.Errorf("%w: %.80q is no site name (a DNS label in lower case)", ErrInvalid, v.Site)
	case v.Inviter == [16]byte{}:
		return fmt.Errorf("%w: no inviter", ErrInvalid)
	case len(v.Addresses) == 0 || len(v.Addresses) > MaxAddresses:
		return fmt.Errorf("%w: %d addresses, not 1 to %d", ErrInvalid, len(v.Addresses), MaxAddresses)
	}
	for _, addr := range v.Addresses {
		if err := checkAddress(addr); err != nil {
			return err
		}
	}
	return nil
}

// checkAddress accepts host:port with printable characters and a port that can be dialed.
func checkAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	n, cause := strconv.ParseUint(port, 10, 16)
	if err != nil || cause != nil || host == "" || n == 0 || len(addr) > maxAddress || !printable(addr) {
		return fmt.Errorf("%w: address %.80q is not HOST:PORT", ErrInvalid, addr)
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
