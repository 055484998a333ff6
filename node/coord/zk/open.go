package zk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Open starts a member. It returns once the ensemble has answered and, for a new
// member, the state admits it; ctx is not used afterwards.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{
		cfg: cfg, t: cfg.Profile.timing(), log: cfg.Logger, machine: machine{m: cfg.Machine}, nonce: cfg.Site + "/" + nonce(),
		kick: make(chan struct{}, 1), changed: make(chan struct{}, 1), grown: make(chan struct{}, 1), ear: ear{news: make(chan struct{}, 1)},
		life: relay.NewLife(), closed: make(chan struct{}), fitness: fitness{attempts: relay.Attempts{Limits: relay.UnfitLimits}},
	}
	if cfg.timing != nil {
		l.t = *cfg.timing
	}
	if l.cfg.net == nil {
		l.cfg.net = &relay.Network{}
	}
	l.peers = &relay.Dialer{Net: l.cfg.net, Site: l.cfg.Site}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.open(ctx); err != nil {
		l.cancel()
		return nil, fmt.Errorf("open log: %w", errors.Join(err, l.release()))
	}
	l.start()
	return l, nil
}

func nonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// release gives back what open took, whatever of it there is.
func (l *Log) release() error {
	if l.mux != nil {
		l.mux.Close()
	}
	if l.c != nil {
		l.c.close()
	}
	if l.lock != nil {
		return l.lock.Close()
	}
	return nil
}

func (l *Log) open(ctx context.Context) error {
	err := compare.Refuse(l.cfg.Evidence)
	if err != nil {
		return err
	}
	if l.lock, err = relay.LockDir(l.cfg.Dir); err != nil {
		return err
	}
	m, err := loadMember(l.cfg.Dir)
	if err != nil {
		return err
	}
	switch {
	case m != nil:
		if err = m.check(&l.cfg); err != nil {
			return err
		}
	case !l.cfg.Bootstrap && !l.cfg.Join:
		return fmt.Errorf("%w: %s: start it with --bootstrap to found a federation, or --join to enter one", ErrNoData, l.cfg.Dir)
	}
	if err = l.listen(); err != nil {
		return err
	}
	if l.c, err = connect(l.cfg.Place, l.cfg.dial, l.log); err != nil {
		return err
	}
	ctx, cancel := l.c.whileAnswered(ctx, l.t.open, errPatience)
	defer cancel()
	if err = l.c.unreachable(l.cfg.Place, l.settleIn(ctx, m)); err == nil {
		l.compareSession()
	}
	return err
}

// compareSession warns of an ensemble that gives longer sessions than were asked
// for: leases are made for those.
func (l *Log) compareSession() {
	given, asked := time.Duration(l.c.dialer.granted.Load()), l.cfg.session()
	if given > asked {
		l.log.Warn().Stringer("given", given).Stringer("asked", asked).Msg(
			"the ensemble keeps a dead lead's session for longer than asked: set zk_session to what it gives, or its tickTime lower")
	}
}

var errPatience = errors.New("no call was answered for too long")

// settleIn finds the tree, or founds it, and enters the group.
func (l *Log) settleIn(ctx context.Context, m *member) error {
	c, err := l.readCharter(ctx)
	switch {
	case err != nil:
		return err
	case m == nil && l.cfg.Bootstrap && c != nil:
		return fmt.Errorf("%w: %s%s is federation %s already: join it, or name another chroot", ErrTree, l.c.root, pathFederation, c.Federation)
	case m == nil && l.cfg.Bootstrap, m != nil && m.Founder && c == nil:
		if m, c, err = l.found(ctx, m); err != nil {
			return err
		}
	case c == nil && m != nil:
		return fmt.Errorf("%w: %s%s does not exist, and this data is of federation %s: check the chroot, or bring the ensemble's data back",
			ErrNoTree, l.c.root, pathFederation, m.Federation)
	case c == nil && l.cfg.MinEpoch > 0:
		return fmt.Errorf("%w: %s%s does not exist: this site comes from another backend: import the state first (cloudshare state import)",
			ErrNoTree, l.c.root, pathFederation)
	case c == nil:
		return fmt.Errorf("%w: %s%s does not exist: check the chroot, or found a federation with --bootstrap", ErrNoTree, l.c.root, pathFederation)
	}
	l.federation, _ = parseID(c.Federation) // parseCharter has read both
	l.line, _ = parseID(c.Lineage)
	l.c.mark = markPath(c.Lineage)
	l.calls = l.newCalls()
	switch {
	case c.Epoch < l.cfg.MinEpoch:
		err = fmt.Errorf("%w: %s is in epoch %d, this site has been in epoch %d: import the state first (cloudshare state), or name another chroot",
			ErrIdentity, l.c.root, c.Epoch, l.cfg.MinEpoch-1)
	case m == nil || m.follows(*c):
		err = l.join(ctx, *c)
	default:
		err = l.settled(m, *c)
	}
	if err == nil {
		err = l.c.checkOpen(ctx)
	}
	if err != nil {
		return err
	}
	l.mux.SetGroup(l.line)
	if err = l.enlist(ctx); err != nil {
		return err
	}
	return l.bury(ctx)
}

// readCharter returns nil if there is no federation. It refuses a tree that
// anybody may write.
func (l *Log) readCharter(ctx context.Context) (*charter, error) {
	n, err := l.c.get(ctx, pathFederation)
	if err != nil || !n.found {
		return nil, err
	}
	c, err := parseCharter(l.c.root+pathFederation, n.data)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{"", pathFederation, pathLead, pathLog} {
		if err := l.c.checkACL(ctx, path); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// sameTree looks whether the chroot still holds the tree that this member is of,
// once a connection: somebody may have replaced it while there was none.
func (l *Log) sameTree(ctx context.Context) error {
	connection := l.c.connects.Load()
	if l.sure.Load() == connection {
		return nil
	}
	n, err := l.c.get(ctx, pathFederation)
	if err == nil {
		err = l.recognize(n)
	}
	if err == nil {
		l.sure.Store(connection)
	}
	return err
}

// recognize refuses a charter that is not this member's.
func (l *Log) recognize(n node) error {
	path := l.c.root + pathFederation
	if !n.found {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, path)
	}
	c, err := parseCharter(path, n.data)
	if err == nil && c.Lineage != hex.EncodeToString(l.line[:]) {
		err = fmt.Errorf("%w: %s is now federation %s in epoch %d: somebody has put another tree in the place of this broker's: name the chroot of its own",
			ErrIdentity, path, c.Federation, c.Epoch)
	}
	return err
}

// found makes the tree in one transaction, so that it is there or not. The claim
// is saved first: a founder that crashed founds again.
func (l *Log) found(ctx context.Context, m *member) (*member, *charter, error) {
	if m == nil {
		id := hex.EncodeToString(l.cfg.Federation[:])
		m = l.member(charter{Federation: id, Lineage: id})
		m.Founder = true
		if err := m.save(l.cfg.Dir); err != nil {
			return nil, nil, err
		}
	}
	c := &charter{Version: treeVersion, Federation: m.Federation, Lineage: m.Lineage}
	return m, c, plant(ctx, l.c, *c, pointer{}, nil)
}

// settled compares this member's data with the tree. A founder's claim is done with
// then: were the tree deleted, it must not found the same federation once more.
func (l *Log) settled(m *member, c charter) error {
	err := m.checkTree(c, l.c.root+pathFederation)
	if err == nil && m.Founder {
		m.Founder = false
		err = m.save(l.cfg.Dir)
	}
	return err
}

func (l *Log) member(c charter) *member {
	return &member{Version: 1, Site: l.cfg.Site, Node: hex.EncodeToString(l.cfg.Node[:]), Federation: c.Federation, Epoch: c.Epoch, Lineage: c.Lineage}
}

// join brings the state up to date and asks it whether it admits this node.
func (l *Log) join(ctx context.Context, c charter) error {
	if l.cfg.Federation != [16]byte{} && l.cfg.Federation != l.federation {
		return fmt.Errorf("join %s: %w: it is federation %s, not %x", l.c.root, coord.ErrForeign, c.Federation, l.cfg.Federation)
	}
	err := l.catchAll(ctx)
	if err != nil {
		return err
	}
	l.machine.with(func(m coord.Machine) { err = m.Admit(l.cfg.Site, l.cfg.Node) })
	if err != nil {
		return fmt.Errorf("join %s: %w: %w", l.c.root, coord.ErrJoinRefused, err)
	}
	return l.member(c).save(l.cfg.Dir)
}

// catchAll applies all that is in the tree now.
func (l *Log) catchAll(ctx context.Context) error {
	rd := &reader{l: l, w: newWatches(), ahead: 1}
	for {
		if caught, err := rd.advance(ctx); caught || err != nil {
			return err
		}
	}
}

// enlist makes this node a member that stands for lead.
func (l *Log) enlist(ctx context.Context) error {
	mine := encode(enlisted{Node: hex.EncodeToString(l.cfg.Node[:])})
	for _, node := range []struct {
		path string
		data []byte
	}{{pathMembers, mine}, {pathVoters, nil}} {
		if err := l.c.ensure(ctx, node.path+"/"+l.cfg.Site, node.data); err != nil {
			return err
		}
	}
	n, err := l.c.get(ctx, pathMembers+"/"+l.cfg.Site)
	if err != nil {
		return err
	}
	if string(n.data) != string(mine) {
		return fmt.Errorf("join: %w: %s%s/%s is another node: site %s runs with another data directory; choose another name",
			coord.ErrJoinRefused, l.c.root, pathMembers, l.cfg.Site, l.cfg.Site)
	}
	return nil
}

// bury deletes the ephemerals of this member's former life, whose session would
// hold the lead, and everybody up, until it expires. The lock of the data
// directory says that it is over; were it not, the fence would hold it back.
func (l *Log) bury(ctx context.Context) error {
	for _, path := range []string{pathLeader, pathPresent + "/" + l.cfg.Site, unfitPath(l.cfg.Site)} {
		n, err := l.c.get(ctx, path)
		if err != nil {
			return err
		}
		if !n.found || !strings.HasPrefix(string(n.data), l.cfg.Site+"/") {
			continue
		}
		if err = l.c.drop(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// listen binds the peer port.
func (l *Log) listen() error {
	ln, addr, err := relay.Listen(l.cfg.Listen, l.cfg.Advertise)
	if err == nil {
		l.addr = addr
		l.mux = relay.NewMux(ln, l.cfg.Site, l.t.handshake, l.log, l.cfg.net)
	}
	return err
}

func (l *Log) newCalls() *relay.Calls {
	return relay.New(l.ctx, relay.Config{
		Site: l.cfg.Site, Backend: backend{l}, Position: &l.machine.position, Mux: l.mux,
		Dialer: l.peers, Timing: l.t.Timing,
		Hooks: relay.Hooks{Entry: l.cfg.Hooks.Entry, Forward: l.cfg.Hooks.Forward},
		Ready: func() { coord.Signal(l.changed) },
	}, l.line)
}

// start runs the goroutines.
func (l *Log) start() {
	l.mux.Handle(relay.KindForward, l.calls.Serve)
	l.mux.Handle(relay.KindFeed, l.serveFeed)
	l.mux.Handle(relay.KindRaft, refuse)
	l.mux.Handle(relay.KindJoin, l.refuseJoin)
	l.startComparing()
	l.mux.Serve()
	l.calls.Start()
	for _, run := range []func(context.Context){l.watchRoles, l.passTime, l.follow, l.attend, l.keepSmall, l.becomeCurrent} {
		l.wg.Go(func() { run(l.ctx) })
	}
}

// refuseJoin answers a broker on Raft that wants to join, in the words of its
// backend.
func (l *Log) refuseJoin(conn net.Conn, _ relay.Preamble) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(l.t.handshake))
	if _, err := relay.ReadFrame(conn, nil, maxQuestion); err != nil {
		return
	}
	answer := encode(map[string]string{
		"code": "refused", "text": "this federation is on ZooKeeper: start with --coordination zookeeper and --zk " + l.cfg.Place.String(),
	})
	_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), answer...))) // it may have gone
}

// maxQuestion bounds the question of a join, in bytes.
const maxQuestion = 8 << 10

// refuse is for connections of another backend.
func refuse(conn net.Conn, _ relay.Preamble) { _ = conn.Close() }
