package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api"
	"github.com/cloudshare/cloudshare/api/contact"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/files/uploads"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
)

// brokerParts are a broker's parts in the order in which they are opened.
type brokerParts struct {
	journal  *record.Journal
	member   *siteMember
	invited  *invitation.Invitation // by which to join; nil: it founds, or is a member
	log      orderedLog
	outputs  *outputs.Store
	handlers []executor.Handler
	hints    *hints
	broker   *broker.Broker
	records  *records
	server   *api.Server
	tokens   closingAccess
	debug    *debugServer
	// endContacts ends the checks of other sites' addresses and waits for that.
	endContacts func()
	uploads     *uploads.Uploads // nil: none are taken
	endSweep    func()           // ends the removal of uploads that nobody goes on with, likewise
	endRefresh  func()           // ends the questions about who the members are, likewise
	endKeys     func()           // ends what is kept to ask other sites for keys
	files       *store.Store     // nil: no files travel with tasks
	transfers   *transfer.Client
	version     string // of the program
}

// runBroker wires a broker and runs it until ctx ends or it fails.
func runBroker(ctx context.Context, cfg config.Config, invited *invitation.Invitation, version string,
	log zerolog.Logger,
) error {
	defer collectSeldom()()
	p := brokerParts{version: version, invited: invited}
	err := p.start(ctx, cfg, log)
	if err == nil {
		tellService(log, "READY=1")
		log.Info().Str("http", p.server.Addr()).Str("peer", p.log.Addr()).Str("data", cfg.DataDir).Msg("broker started")
		select {
		case <-ctx.Done():
			log.Info().Msg("broker stopping")
		case <-p.broker.Failed():
			err = p.broker.Err()
		case <-p.broker.Left():
			log.Info().Msg("site left; start the broker again to come back")
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // told to stop while it started
	}
	tellService(log, "STOPPING=1")
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.StopWait)
	defer cancel()
	return errors.Join(err, p.stop(stop, cfg.StopTasks))
}

func (p *brokerParts) start(ctx context.Context, cfg config.Config, log zerolog.Logger) error {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("make data_dir: %w", err)
	}
	var err error
	if p.journal, err = record.OpenJournal(cfg.DataDir); err != nil {
		return err
	}
	joined, err := config.HasData(cfg.DataDir)
	if err != nil {
		return err
	}
	key, err := identify(ctx, cfg, p.journal, joined, log)
	if err != nil {
		return err
	}
	if p.member, err = openMembership(cfg, key, joined, log); err != nil {
		return err
	}
	if err = cfg.CanListen(); err != nil { // before anything is founded
		return err
	}
	replica := replica.NewReplica()
	replica.KeepCheckpoints()
	p.member.history = keepHistory(cfg, replica, p.version, log)
	if cause := replica.KeepDates(cfg.DataDir); cause != nil {
		log.Warn().Err(cause).Msg("saved dates unreadable; continuing without them")
	}
	var seen whereabouts
	if p.log, err = openCoordination(ctx, cfg, p.member, replica, &seen, p.invited, log); err != nil {
		return err
	}
	if p.outputs, err = attempts.OpenStore(cfg.DataDir, cfg.Retention(), log); err != nil {
		return err
	}
	if p.handlers, err = openHandlers(cfg, p.log.Federation(), p.outputs, log); err != nil {
		return err
	}
	if p.hints, err = openGossip(cfg, p.log, replica, p.member.Trust, log); err != nil {
		return err
	}
	seen.gossip.Store(p.hints.gossip)
	exposure := node.DefaultExposure()
	exposure.ReserveCores = int64(cfg.Reserve)
	limits, err := cfg.UserLimits()
	if err != nil {
		return err
	}
	secrets, err := keepSecret(cfg.DataDir, p.journal, log)
	if err != nil {
		return err
	}
	ask, endKeys := askKeys(p.log.DialKeys)
	p.endKeys = endKeys
	if p.files, err = openFiles(cfg); err != nil {
		return err
	}
	p.transfers = transfer.NewClient(p.log.DialFiles)
	told, err := cfg.ForNotices()
	if err != nil {
		return err
	}
	roots, err := cfg.TESRoots()
	if err != nil {
		return err
	}
	p.broker, err = broker.New(broker.Config{
		AskKeys: ask, Roots: roots,
		Files: p.files, Transfers: p.transfers, Data: cfg.DataTerms(), Notify: told,
		UserLimits: limits, UserHalfLife: cfg.UserHalfLife,
		Site: cfg.Site, Node: key.Public().Node(), Version: p.version,
		Exposure: exposure, KillGrace: cfg.Timing().Grace,
		Disk:    cfg.Disk(),
		Journal: p.journal, Replica: replica, Log: p.log, Far: cfg.IsWAN(),
		Handlers: p.handlers, Terms: cfg.Terms(),
		Outputs: p.outputs.Stats, Home: homeLogs(cfg, p.outputs, p.log.DialLogs),
		DialProgress: p.log.DialProgress, Reach: p.log.Reach,
		Genesis: genesis(p.log.Federation(), key.Public(), cfg.Timing()), Logger: log,
		Refused:     p.member.refusal,
		DropSecrets: func(used []bool) error { return dropSecrets(cfg.DataDir, p.journal, secrets, used) },
		Hints:       p.hints, Registered: func(n uint64) {
			if cause := p.hints.gossip.UpdateIncarnation(n); cause != nil {
				log.Warn().Err(cause).Msg("new incarnation not announced by gossip")
			}
		},
	})
	if err != nil {
		return err
	}
	p.member.broker.Store(p.broker)
	p.broker.KeepEstimates(cfg.DataDir)
	if p.records, err = openRecords(cfg, p.log.Federation(), p.broker, log); err != nil {
		return err
	}
	p.records.history = p.member.history
	return p.serve(ctx, cfg, log)
}

// serve opens the API first: its port is part of what the broker registers.
func (p *brokerParts) serve(ctx context.Context, cfg config.Config, log zerolog.Logger) error {
	contacts := contact.New(newContactConfig(cfg, p.log, p.broker, log))
	reg := newRegistry(p.broker, p.handlers, p.outputs, p.records)
	secured, err := openClientTLS(cfg, log)
	if err != nil {
		return err
	}
	tokens, err := openTokens(cfg, secured.pin)
	if err != nil {
		return err
	}
	p.tokens = tokens
	socket := openOperatorSocket(cfg.DataDir, log)
	rates := api.Rates(cfg.Rates)
	if p.uploads, err = openUploads(cfg); err != nil {
		return err
	}
	fetched, err := cfg.ForImports()
	if err != nil {
		return err
	}
	roots, err := cfg.TESRoots()
	if err != nil {
		return err
	}
	server := api.New(api.Config{
		Uploads: p.uploads, Imports: fetched, TESRoots: roots,
		Listen: cfg.HTTP, Names: append([]string{cfg.Peer, cfg.Advertise}, cfg.HTTPNames...), Version: p.version,
		Archive: p.records.archive, Recent: p.records.recent, Access: tokens, Audit: p.records.audit,
		Rates:      &rates,
		Challenge:  cfg.OIDC.Challenge(),
		Federation: uuid.UUID(p.log.Federation()).String(), Contacts: contacts,
		Peers: p.log.HTTP(), DialPeer: p.log.DialHTTP, Operator: socket, TLS: secured.cfg, Vouched: secured.vouched,
		Misdialed: relay.Misdialed("the API's port (http) of site " + cfg.Site),
	}, p.broker, reg, log)
	if err = server.Start(); err != nil {
		if socket != nil {
			err = errors.Join(err, socket.Close())
		}
		return err
	}
	p.server = server
	debug, err := openDebug(cfg, log)
	if err != nil {
		return err
	}
	p.debug = debug
	p.sweepUploads()
	p.records.collector.Start()
	p.watchContacts(contacts)
	p.refreshRoster()
	return p.broker.Start(ctx, broker.Addresses{
		HTTP: cmp.Or(cfg.Advertised(server.Addr()), reachable(server.Addr(), p.log.Addr())), Peer: p.log.Addr(),
		Gossip: p.hints.address(cfg),
	})
}

// reachable gives an API that listens on all addresses the host of the peer
// listener, which is always one that others can dial.
func reachable(http, peer string) string {
	host, port, err := net.SplitHostPort(http)
	if err != nil || !net.ParseIP(host).IsUnspecified() {
		return http
	}
	peerHost, _, err := net.SplitHostPort(peer)
	if err != nil {
		return http
	}
	return net.JoinHostPort(peerHost, port)
}

// stop closes the parts in reverse; those that were not opened are nil.
func (p *brokerParts) stop(ctx context.Context, endTasks bool) error {
	forewarnHandlers(p.handlers)
	var errs []error
	if p.endContacts != nil {
		p.endContacts()
	}
	if p.endRefresh != nil {
		p.endRefresh()
	}
	if p.server != nil {
		errs = append(errs, p.server.Shutdown(ctx))
	}
	if p.endSweep != nil {
		p.endSweep()
	}
	if p.uploads != nil { // after the server
		errs = append(errs, p.uploads.Close())
	}
	if p.tokens != nil {
		errs = append(errs, p.tokens.Close())
	}
	switch {
	case p.broker != nil:
		errs = append(errs, p.broker.Stop(ctx, endTasks))
	default:
		errs = append(errs, closeHandlers(p.handlers))
	}
	if p.endKeys != nil { // after the broker
		p.endKeys()
	}
	if p.transfers != nil { // likewise
		p.transfers.Close()
	}
	if p.outputs != nil { // after the handlers
		errs = append(errs, p.outputs.Close())
	}
	if p.records != nil { // after the broker's last events
		errs = append(errs, p.records.close())
	}
	if p.debug != nil {
		errs = append(errs, p.debug.close())
	}
	if p.hints != nil {
		errs = append(errs, p.hints.gossip.Leave(ctx), p.hints.gossip.Close())
	}
	if p.member != nil { // before the peer port, which waits for them
		p.member.files.end()
	}
	if p.log != nil {
		errs = append(errs, p.log.Close())
	}
	if p.files != nil { // after everybody who reads it
		errs = append(errs, p.files.Close())
	}
	if p.member != nil { // after the last entry
		errs = append(errs, p.member.close())
	}
	if p.journal != nil {
		errs = append(errs, p.journal.Close())
	}
	return errors.Join(errs...)
}

// memberConfig is what a member is told on any backend; dir is its folder.
func memberConfig(cfg config.Config, dir string, m *siteMember, replica *replica.Replica) facade.Config {
	c := facade.Config{
		Site: cfg.Site, Node: m.Key.Public().Node(), Federation: m.federation, Dir: filepath.Join(cfg.DataDir, dir),
		Listen: cfg.Peer, Advertise: cfg.Advertised(cfg.Peer),
		Machine: replica, Logger: m.log, Evidence: filepath.Join(cfg.DataDir, config.DivergedDir),
		Proofs: filepath.Join(cfg.DataDir, config.EvidenceDir),
		Net:    m.Net, Enroll: m.serveEnroll, Keys: m.serveKeys, Files: m.files.serve, Logs: m.serveLogs,
		Progress: m.serveProgress,
	}
	if m.history != nil {
		c.Keep = m.history.Statements
	}
	if cfg.IsWAN() {
		c.Profile = facade.WAN
	}
	return c
}

// genesis returns what this broker would found the federation with.
func genesis(federation [16]byte, founder identity.Public, t node.Timing) command.Genesis {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	params := command.DefaultParams()
	params.LeaseMs, params.MarginMs = t.Lease.Milliseconds(), t.Margin.Milliseconds()
	return command.Genesis{
		Federation: federation, CreatedMs: time.Now().UnixMilli(),
		Seed: binary.LittleEndian.Uint64(seed[:]), Params: params, Founder: signature.Key(founder),
	}
}
