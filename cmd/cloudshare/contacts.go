package main

import (
	"context"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/contact"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// contactConfig checks the sites that are alive in the state. One that has ended is
// so for a lease and its margin.
func (c Config) contactConfig(federation [16]byte, b *node.Broker, log zerolog.Logger) contact.Config {
	t := c.timing()
	return contact.Config{
		Site: c.Site, Federation: uuid.UUID(federation).String(), Logger: log, Patience: t.Lease + t.Margin,
		Sites: func() (list []contact.Site) {
			for _, s := range b.Sites() {
				if s.State == fsm.Alive {
					list = append(list, contact.Site{ID: s.ID, HTTP: s.HTTP, Incarnation: s.Incarnation})
				}
			}
			return list
		},
	}
}

// watchContacts runs the checks until stop.
func (p *brokerParts) watchContacts(c *contact.Checker) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	p.endContacts = func() {
		cancel()
		<-done
	}
}
