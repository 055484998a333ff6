package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The network of a sandbox that reaches the world: a link to the process that has its stack, and to nobody else.
var (
	DeviceAddress = netip.MustParsePrefix("10.0.2.100/24")
	NameServer    = netip.MustParseAddrPort("10.0.2.3:53")
)

// DeviceMTU is the size of its packets, which no wire bounds.
const DeviceMTU = 16 << 10

const deviceName = "net0"

// tunDevice makes interfaces, for whoever has the right in its network namespace.
const tunDevice = "/dev/net/tun"

// GiveDevice makes the interface by which those inside reach the world, and sends its other end by the socket, in one
// message. What has the socket's other end is the only network of this namespace then.
// REQUIRES: Enter was not called yet.
func GiveDevice(socket int) error {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s (a service with PrivateDevices must be shown it, and the broker's user may use it): %w", tunDevice, err)
	}
	defer unix.Close(fd)
	if err = makeInterface(fd); err != nil {
		return fmt.Errorf("make an interface: %w", err)
	}
	if err = unix.Sendmsg(socket, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("hand over the interface: %w", err)
	}
	return nil
}

// DeviceStands reports whether the interface of GiveDevice is there: it goes with what has its other end.
func DeviceStands() bool {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // nothing says otherwise
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq(deviceName)
	if err == nil {
		err = unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, ifr)
	}
	return !errors.Is(err, unix.ENODEV) && (err != nil || ifr.Uint16()&unix.IFF_UP != 0)
}

// makeInterface makes it, with an address and the way to everywhere.
func makeInterface(tun int) error {
	ifr, err := unix.NewIfreq(deviceName)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err = unix.IoctlIfreq(tun, unix.TUNSETIFF, ifr); err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	address := DeviceAddress.Addr().As4()
	mask := [4]byte{255, 255, 255, 0} // of DeviceAddress
	for _, step := range []struct {
		call uint
		set  func(*unix.Ifreq) error
	}{
		{unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(address[:]) }},
		{unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask[:]) }},
		{unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(DeviceMTU); return nil }},
		{unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
	} {
		if ifr, err = unix.NewIfreq(deviceName); err == nil {
			err = step.set(ifr)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, step.call, ifr)
		}
		if err != nil {
			return err
		}
	}
	return addDefaultRoute(s)
}

// route is the kernel's struct rtentry.
type route struct {
	_                  uint64
	dst, gateway, mask unix.RawSockaddrInet4
	flags              uint16
	_                  [6]byte
	_, _               uint64
	metric             int16
	_                  [6]byte
	dev                *byte
	_, _               uint64
	_                  uint16
	_                  [6]byte
}

// addDefaultRoute sends all that is not for the namespace itself by the interface.
func addDefaultRoute(socket int) error {
	name, err := unix.BytePtrFromString(deviceName)
	if err != nil {
		return err
	}
	r := route{flags: unix.RTF_UP, dev: name}
	r.dst.Family, r.mask.Family = unix.AF_INET, unix.AF_INET
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r)))
	if errno != 0 {
		return errno
	}
	return nil
}

// ResolvConf is where libraries look for their name server.
const ResolvConf = "/etc/resolv.conf"

// nameServer names the stack's as the only name server. The machine's file is not shown: it may be a link to
// elsewhere, and names what cannot be reached.
func (p Plan) nameServer(b *builder) error {
	if !p.Outbound {
		return nil
	}
	if err := b.mkdir(filepath.Dir(ResolvConf)); err != nil {
		return err
	}
	return os.WriteFile(b.root+ResolvConf, []byte("nameserver "+NameServer.Addr().String()+"\n"), 0o644)
}
