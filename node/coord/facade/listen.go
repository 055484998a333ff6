package facade

import (
	"fmt"
	"net"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// listen binds the peer port, and returns what others dial: advertise, or else the
// bound address. Connections wait in the kernel until somebody accepts them.
func listen(address, advertise string) (net.Listener, string, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("listen for peers: %w: free the address or choose another", err)
	}
	dialed := advertise
	if dialed == "" {
		dialed = ln.Addr().String()
		if ln.Addr().(*net.TCPAddr).IP.IsUnspecified() {
			err = fmt.Errorf("%w: peers cannot dial %s: set an advertise address", ErrConfig, dialed)
		}
	}
	if cause := relay.CheckAddress(dialed); cause != nil && err == nil {
		err = fmt.Errorf("%w: %w: set another advertise address", ErrConfig, cause)
	}
	if err != nil {
		_ = ln.Close()
		return nil, "", err
	}
	return ln, dialed, nil
}
