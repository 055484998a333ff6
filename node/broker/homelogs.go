package broker

import (
	"context"

	"github.com/cloudshare/cloudshare/node/broker/homelogs"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

// bringHome makes what brings home the outputs of own tasks that ran elsewhere.
func (b *Broker) bringHome() (err error) {
	if b.cfg.Home == nil {
		return nil
	}
	b.home, err = homelogs.New(*b.cfg.Home, homelogs.Around{
		Site: b.cfg.Site, Source: homelogs.StateOf(b.cfg.Site, b.cfg.Replica), Events: b.Events, Now: b.Feed().Now,
		Current: b.registrar.current, Full: b.disk.Full, Logger: b.cfg.Logger,
	})
	return err
}

// GiveOutput opens what an attempt of a job of the site from has written here, for that site's broker, or says why not.
// Its streams end when the attempt has.
func (b *Broker) GiveOutput(ctx context.Context, from string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
	if !b.recovered.Load() { // "it is not there" would be believed
		return asklogs.Output{}, asklogs.Unreadable
	}
	return b.Reader.GiveOutput(ctx, from, r)
}

// HomeLogs tells what was brought home since the start; zero if nothing is.
func (b *Broker) HomeLogs() homelogs.Stats {
	if b.home == nil {
		return homelogs.Stats{}
	}
	return b.home.Stats()
}
