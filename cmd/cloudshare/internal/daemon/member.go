package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/credentials"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/node/broker"
	"github.com/cloudshare/cloudshare/node/coord/askkeys"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
	"github.com/cloudshare/cloudshare/node/replica"
	"github.com/cloudshare/cloudshare/node/seal"
)

// siteMember is who this site is among the members, from before its backend is opened.
type siteMember struct {
	*credentials.Credentials
	cfg config.Config
	log zerolog.Logger

	// federation is what this broker founds or joins; zero on data that are a member's already.
	federation [16]byte
	through    []string        // peer addresses to join through
	history    *history.Keeper // nil: no history of the log is kept
	broker     atomic.Pointer[broker.Broker]
	files      *fileServer
	refused    atomic.Pointer[string] // how the others refuse this site; nil or "": they do not
}

// refusal returns how the others refuse this site, "" = they do not.
func (m *siteMember) refusal() string {
	if why := m.refused.Load(); why != nil {
		return *why
	}
	return ""
}

// openMembership knows the others by the roster in data_dir.
func openMembership(cfg config.Config, key identity.Key, joined bool, log zerolog.Logger) (*siteMember, error) {
	c, err := credentials.Open(cfg.DataDir, key, cfg.Deny)
	if err != nil {
		return nil, err
	}
	m := &siteMember{Credentials: c, cfg: cfg, log: log}
	m.files = newFileServer(cfg.Uplink(), m.broker.Load)
	if joined && len(c.Trust.Roster().Members) == 0 {
		log.Warn().Str("file", config.RosterFile).Msg("who the members are is not known here, so none of them is let in or " +
			"dialed: copy the file roster from the data_dir of a member that you trust, and start this broker again")
	}
	return m, nil
}

// found has the roster of a new federation hold this site alone.
func (m *siteMember) found() error {
	m.federation = uuid.New()
	if err := m.Trust.Reset(credentials.Founded(m.federation, m.cfg.Site, m.Key.Public())); err != nil {
		return fmt.Errorf("found a federation: %w", err)
	}
	return nil
}

// join has this site admitted by its invitation, if there is one, however long the electors take.
func (m *siteMember) join(ctx context.Context, v *invitation.Invitation, room *waitingRoom) error {
	if v == nil {
		return nil
	}
	m.federation, m.through = v.Federation, v.Addresses
	if m.admitted(v.Federation) {
		return nil // the join of the group was not over
	}
	asking := enroll.Asking{
		Dialer: &relay.Dialer{Net: m.Net, Site: m.cfg.Site},
		Waiting: func(why string) {
			m.log.Warn().Strs("through", v.Addresses).Str("reason", why).Stringer("key", m.Key.Public()).
				Msg("not admitted yet: trying again")
			room.setReason(fmt.Sprintf("this broker waits to be admitted to its federation, with key %s: %s", m.Key.Public(), why))
		},
	}
	r, err := asking.Join(ctx, v, m.Key)
	if err != nil {
		return refusedJoin(err)
	}
	if err = m.Trust.Reset(r); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	m.log.Info().Int("members", len(r.Members)).Msg("admitted to the federation")
	return nil
}

// refusedJoin gives what no repetition would change its exit code.
func refusedJoin(err error) error {
	if errors.Is(err, enroll.ErrRefused) {
		return cli.WithExit(cli.ExitRefused, err)
	}
	return err
}

// admitted reports whether the saved roster has this site with its key.
func (m *siteMember) admitted(federation [16]byte) bool {
	r := m.Trust.Roster()
	return r.Federation == federation && slices.ContainsFunc(r.Members, func(e truststore.Entry) bool {
		return e.Site == m.cfg.Site && e.Key == m.Key.Public() && !e.Banned
	})
}

// follow keeps the roster as the state has it.
func (m *siteMember) follow(federation [16]byte, r *replica.Replica) {
	m.federation = federation
	m.Trust.OnUnsaved(m.sayUnsaved)
	r.OnRoster(func(changed uint64, c roster.Contents) {
		if err := m.Trust.Update(credentials.RosterOf(federation, changed, c)); err != nil {
			m.sayUnsaved(err)
		}
		m.provenKey(c)
	})
}

// sayUnsaved logs why the roster in data_dir is an older one.
func (m *siteMember) sayUnsaved(err error) {
	m.log.Error().Err(err).Msg("who the members are is not kept: free the disk, or this broker knows less after a restart")
}

// close writes the members that have just come, and ends the history. It is to be called after the last entry.
func (m *siteMember) close() error {
	if err := m.Trust.Flush(); err != nil {
		m.sayUnsaved(err)
	}
	if m.history == nil {
		return nil
	}
	return m.history.Close()
}

// serveEnroll answers those who are no members yet.
func (m *siteMember) serveEnroll(conn net.Conn, _ relay.Preamble) {
	var h enroll.Host
	if b := m.broker.Load(); b != nil {
		h = host{b, m.Trust}
	}
	if err := enroll.Serve(context.Background(), conn, h); err != nil { // it bounds itself
		m.log.Debug().Err(err).Msg("a question of somebody who wants to be a member was not answered")
	}
}

// brokerFor returns the broker that is to serve a connection. As long as there is none it ends the connection.
func (m *siteMember) brokerFor(conn net.Conn) *broker.Broker {
	b := m.broker.Load()
	if b == nil {
		_ = conn.Close()
	}
	return b
}

// serveKeys answers members that run this site's jobs.
func (m *siteMember) serveKeys(conn net.Conn, p relay.Preamble) {
	b := m.brokerFor(conn)
	if b == nil {
		return
	}
	answer := func(ctx context.Context, from string, q askkeys.Question) []seal.Answer {
		return b.Keys(ctx, from, q.Index, q.Attempts)
	}
	s := askkeys.Server{Site: m.cfg.Site, Answer: answer}
	s.Serve(conn, p)
}

// askKeys returns how this broker asks others for keys, and what ends the connections that it keeps for that.
func askKeys(dial func(ctx context.Context, site, addr string) (net.Conn, error)) (broker.AskKeys, func()) {
	c := &askkeys.Client{Dial: dial}
	ask := func(ctx context.Context, site, addr string, index uint64, refs []command.AttemptRef,
	) ([]seal.Answer, error) {
		return c.Ask(ctx, site, addr, askkeys.Question{Index: index, Attempts: refs})
	}
	return ask, c.Close
}

// host is what the answers need of the broker.
type host struct {
	*broker.Broker
	trust *truststore.Store
}

// Roster implements enroll.Host.
func (h host) Roster() truststore.Roster { return h.trust.Roster() }

// peers is what a backend knows of the group's members.
type peers interface {
	Peers() []relay.Peer
}

const (
	refreshEvery = 5 * time.Second
	// refreshWait bounds one round of questions.
	refreshWait = 10 * time.Second
)

// refresh asks the members who they are now, as long as no leader is known: it may have a key that this broker has
// not heard of. It ends with ctx.
func (m *siteMember) refresh(ctx context.Context, log orderedLog) {
	known, ok := log.(peers)
	if !ok {
		return // ZooKeeper has the entries, whoever leads
	}
	asking := enroll.Asking{Dialer: &relay.Dialer{Net: m.Net, Site: m.cfg.Site}}
	for {
		select {
		case <-time.After(refreshEvery):
		case <-ctx.Done():
			return
		}
		if log.Status().Lead != "" {
			m.refused.Store(nil)
			continue
		}
		once, cancel := context.WithTimeout(ctx, refreshWait)
		m.learn(asking.Refresh(once, m.Trust.Roster(), known.Peers()))
		cancel()
		if m.refusal() != "" && m.isSuperseded(ctx, known.Peers()) {
			return // a restart is what helps
		}
	}
}

// learn takes over what the others say.
func (m *siteMember) learn(r truststore.Roster, err error) {
	switch {
	case errors.Is(err, relay.ErrBanned), errors.Is(err, relay.ErrUnknownKey):
		why := "the others refuse this site: " + err.Error() + m.keyHint(err)
		if before := m.refused.Swap(&why); before == nil || *before != why {
			m.log.Warn().Err(err).Msg("the other members do not talk to this site")
		}
	case err == nil && r.Index > m.Trust.Roster().Index:
		err = m.Trust.Update(r)
		m.log.Info().Uint64("entry", r.Index).Err(err).Msg("learned from the other members who they are now")
	}
}

// refreshRoster runs refresh until stop.
func (p *brokerParts) refreshRoster() {
	p.endRefresh = background(func(ctx context.Context) { p.member.refresh(ctx, p.log) })
}
