package config

import (
	"fmt"
	"net"
)

// CanListen looks whether the ports are free that the broker takes only once its
// data are a member's.
func (c Config) CanListen() error {
	if err := PortFree(c.HTTP); err != nil {
		return notFree("http", c.HTTP, err)
	}
	err := PortFree(c.Gossip)
	if err == nil {
		err = packetPortFree(c.Gossip)
	}
	if err != nil {
		return notFree("gossip", c.Gossip, err)
	}
	return nil
}

func notFree(key, addr string, err error) error {
	return fmt.Errorf("%s %s cannot be listened at: %w: free it, or give another address of this machine", key, addr, err)
}

// PortFree returns why nothing can listen at addr, nil if something can.
func PortFree(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return l.Close()
}

func packetPortFree(addr string) error {
	l, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	return l.Close()
}
