package netlab

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openTun makes a device in the calling thread's namespace that hands over bare
// IP packets.
func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun (is the tun module there?): %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make tun device: %w", err)
	}
	return os.NewFile(uintptr(fd), "tun"), nil
}

// configure gives the device its address and brings it and the loopback up.
func configure(name string, addr [4]byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	if err := up(fd, "lo"); err != nil {
		return err
	}
	for _, set := range []struct {
		request uint
		value   []byte
	}{{unix.SIOCSIFADDR, addr[:]}, {unix.SIOCSIFNETMASK, []byte{255, 255, 255, 0}}} {
		req, err := unix.NewIfreq(name)
		if err == nil {
			if err = req.SetInet4Addr(set.value); err == nil {
				err = unix.IoctlIfreq(fd, set.request, req)
			}
		}
		if err != nil {
			return fmt.Errorf("give %s its address: %w", name, err)
		}
	}
	return up(fd, name)
}

func up(fd int, name string) error {
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
	}
	if err != nil {
		return fmt.Errorf("bring %s up: %w", name, err)
	}
	return nil
}
