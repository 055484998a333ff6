package daemon

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// lookUpWait bounds one look-up, and lookUpEvery is the time between two.
const (
	lookUpWait  = 2 * time.Second
	lookUpEvery = time.Second
)

// awaitOwnName returns once the name in advertise is found. A federation that is
// founded under a name that nobody knows would be one that nobody can join; a pod's
// name is known only moments after its start.
func awaitOwnName(ctx context.Context, name string, say func(why string), log zerolog.Logger) error {
	if _, err := netip.ParseAddr(name); name == "" || err == nil {
		return nil
	}
	var quietUntil time.Time
	for {
		once, cancel := context.WithTimeout(ctx, lookUpWait)
		_, err := net.DefaultResolver.LookupNetIP(once, "ip", name)
		cancel()
		if err == nil {
			return nil
		}
		say("this broker founds its federation once advertise " + name + " is found: " + err.Error() + ": correct `advertise`, or have the name known")
		if now := time.Now(); now.After(quietUntil) {
			quietUntil = now.Add(relay.LogEvery)
			log.Warn().Err(err).Str("advertise", name).Msg("nothing is founded yet, since nobody could join at a name that is not found: correct `advertise`, or have the name known; trying again")
		}
		select {
		case <-time.After(lookUpEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
