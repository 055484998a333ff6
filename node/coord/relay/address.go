package relay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// ErrAddress reports an address that cannot be a member's, whoever dials it.
var ErrAddress = errors.New("no address that others can dial")

// CheckAddress checks what a member is to be dialed at: host:port that means the
// same at every other member. Whether it is right says only who answers there.
func CheckAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	n, cause := strconv.ParseUint(port, 10, 16)
	ip, notIP := netip.ParseAddr(host)
	switch {
	case len(addr) > command.MaxAddress:
		err = fmt.Errorf("%.80q… is longer than %d bytes", addr, command.MaxAddress)
	case err != nil || host == "" || strings.ContainsFunc(addr,
		func(r rune) bool { return r <= ' ' || r > '~' || r == '@' || r == '/' }):
		err = fmt.Errorf("%.300q is not HOST:PORT", addr)
	case cause != nil || n == 0:
		err = fmt.Errorf("%.300q has no port of 1 to 65535", addr)
	case notIP == nil && ip.Zone() != "":
		err = fmt.Errorf("%.300q has a zone, which means something on one host only", addr)
	case notIP == nil && (ip.IsUnspecified() || ip.IsMulticast() || ip.Unmap().IsUnspecified()):
		err = fmt.Errorf("%.300q is no host's own", addr)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return nil
}
