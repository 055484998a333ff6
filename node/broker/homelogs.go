package broker

import (
	"github.com/cloudshare/cloudshare/node/broker/homelogs"
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

// HomeLogs tells what was brought home since the start; zero if nothing is.
func (b *Broker) HomeLogs() homelogs.Stats {
	if b.home == nil {
		return homelogs.Stats{}
	}
	return b.home.Stats()
}
