package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// pollEvery is how often a condition outside of this process is looked at.
const pollEvery = 20 * time.Millisecond

// finalError ends an Await at once.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// Final marks a condition's error as one that no waiting mends.
func Final(err error) error { return finalError{err} }

// Await looks at cond until it returns nil, ctx ends or the error is Final;
// the error names what was awaited and why it was not so.
func Await(ctx context.Context, what string, cond func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := cond()
		if err == nil {
			return nil
		}
		if last != nil && errors.Is(err, context.Cause(ctx)) && ctx.Err() != nil {
			err = last // the last look was cut short: it says nothing new
		}
		last = err
		var final finalError
		if errors.As(err, &final) {
			return fmt.Errorf("await %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w: %w", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func hostPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// FreeAddress returns a loopback address that is free now and stays free for a
// process that is killed and started again: no connection of others takes a port
// of that range by itself, not even one that dials this very address meanwhile.
func FreeAddress() (string, error) { return FreeAddressOf("127.0.0.1") }

// FreeAddressOf is FreeAddress of another host of this machine.
func FreeAddressOf(host string) (string, error) {
	port, err := ensemble.FreePorts(host, 1)
	return net.JoinHostPort(host, strconv.Itoa(port)), err
}
