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
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// Open starts a member. It returns once the ensemble has answered and, for a new
// member, the state admits it; ctx is not used afterwards.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{
		cfg: cfg, t: timingOf(cfg.Profile), log: cfg.Logger, machine: machine{m: cfg.Machine},
		nonce: cfg.Site + "/" + nonce(), expelled: map[string]bool{},
		kick: make(chan struct{}, 1), grown: make(chan struct{}, 1),
		receiver: feedReceiver{news: make(chan struct{}, 1)},
		fitness: fitness{
			attempts: facade.Attempts{Limits: facade.UnfitLimits},
			said:     relay.Reminder{Every: relay.RemindEvery},
		},
		turns:   turns{attempts: facade.Attempts{Limits: facade.UnfitLimits}},
		hole:    hole{said: relay.Reminder{Every: relay.RemindEvery}},
		mending: mending{attempts: facade.Attempts{Limits: mendLimits}},
		reach:   reach{said: relay.Reminder{Every: relay.RemindEvery}},
	}
	if cfg.timing != nil {
		l.t = *cfg.timing
	}
	l.Member = facade.New(&l.cfg.Config, func() { coord.Signal(l.kick) })
	l.peers = &relay.Dialer{Net: l.cfg.Net, Site: l.cfg.Site}
	l.who = l.cfg.Net.Identity
	if err := l.open(ctx); err != nil {
		l.Cancel()
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

// release frees what Open acquired; safe after a partial Open. The session ends with it:
// the others need no timeout to notice.
func (l *Log) release() error {
	return l.Release(func() error {
		if l.c != nil {
			l.c.close()
		}
		return nil
	})
}

func (l *Log) open(ctx context.Context) error {
	err := l.Claim()
	if err != nil {
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
		return fmt.Errorf("%w: %s: start it with --bootstrap to found a federation, or --join @FILE, with an invitation, to enter one", ErrNoData, l.cfg.Dir)
	}
	if err = l.Listen(l.t.handshake); err != nil {
		return err
	}
	if l.c, err = connect(l.cfg.Place, l.cfg.dial, l.log); err != nil {
		return err
	}
	ctx, cancel := l.c.whileAnswered(ctx, l.t.open, errUnanswered)
	defer cancel()
	if err = l.c.unreachable(l.cfg.Place, l.findOrFound(ctx, m)); err == nil {
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
			"the ensemble keeps a dead leader's session for longer than asked: set zk_session to what it gives, or its tickTime lower")
	}
}

var errUnanswered = errors.New("no call was answered for too long")

// findOrFound finds the tree, or founds it, and enters the group.
func (l *Log) findOrFound(ctx context.Context, m *member) error {
	c, err := l.c.readCharter(ctx)
	switch {
	case err != nil:
		return err
	case m == nil && l.cfg.Bootstrap && c != nil:
		return fmt.Errorf("%w: %s%s is federation %s already: join it, or name another chroot", tree.ErrTree, l.c.root, tree.FederationPath, c.Federation)
	case m == nil && l.cfg.Bootstrap, m != nil && m.Founder && c == nil:
		if m, c, err = l.found(ctx, m); err != nil {
			return err
		}
	case c == nil && m != nil:
		return fmt.Errorf("%w: %s%s does not exist at %s, and this data is of federation %s: check the chroot and the servers, or bring the ensemble's data back",
			ErrNoTree, l.c.root, tree.FederationPath, l.c.zk.Server(), m.Federation)
	case c == nil && l.cfg.MinEpoch > 0:
		return fmt.Errorf("%w: %s%s does not exist at %s: this site comes from another backend: import the state first (cloudshare state import)",
			ErrNoTree, l.c.root, tree.FederationPath, l.c.zk.Server())
	case c == nil:
		return fmt.Errorf("%w: %s%s does not exist at %s: check the chroot and the servers, or found a federation with --bootstrap",
			ErrNoTree, l.c.root, tree.FederationPath, l.c.zk.Server())
	}
	federation, _ := tree.ParseID(c.Federation) // parseCharter has read both
	l.line, _ = tree.ParseID(c.Lineage)
	l.machine.line = l.line
	l.Identify(federation, l.line)
	l.c.mark = tree.MarkPath(c.Lineage)
	l.Bind(backend{l}, l.peers, l.t.Timing, &l.machine.position, l.machine.position.Now, l.SignalChanged)
	switch {
	case c.Epoch < l.cfg.MinEpoch:
		err = fmt.Errorf("%w: %s is in epoch %d, this site has been in epoch %d: import the state first (cloudshare state), or name another chroot",
			ErrIdentity, l.c.root, c.Epoch, l.cfg.MinEpoch-1)
	case m == nil || m.follows(*c):
		err = l.join(ctx, *c)
	default:
		err = l.finishFounding(m, *c)
	}
	if err == nil {
		err = l.checkOpen(ctx)
	}
	if err != nil {
		return err
	}
	l.Mux.SetGroup(l.line)
	if err = l.enlist(ctx); err != nil {
		return err
	}
	return l.deleteFormerEphemerals(ctx)
}

// readCharter returns nil if there is no federation. It refuses a tree that
// anybody may write.
func (c *client) readCharter(ctx context.Context) (*tree.Charter, error) {
	n, err := c.get(ctx, tree.FederationPath)
	if err != nil || !n.found {
		return nil, err
	}
	charter, err := tree.ParseCharter(c.root+tree.FederationPath, n.data)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{"", tree.FederationPath, tree.LeadPath, tree.LogPath} {
		if err := c.checkACL(ctx, path); err != nil {
			return nil, err
		}
	}
	return &charter, nil
}

// sameTree looks whether the chroot still holds the tree that this member is of,
// once a connection: somebody may have replaced it while there was none.
func (l *Log) sameTree(ctx context.Context) error {
	connection := l.c.connects.Load()
	if l.sure.Load() == connection {
		return nil
	}
	n, err := l.c.get(ctx, tree.FederationPath)
	if err == nil {
		err = l.checkCharter(n)
	}
	if err == nil {
		l.sure.Store(connection)
	}
	return err
}

// checkCharter refuses a charter that is not this member's.
func (l *Log) checkCharter(n node) error {
	path := l.c.root + tree.FederationPath
	if !n.found {
		return fmt.Errorf("%w: %s is missing at %s", tree.ErrDamaged, path, l.c.zk.Server())
	}
	c, err := tree.ParseCharter(path, n.data)
	if err == nil && c.Lineage != hex.EncodeToString(l.line[:]) {
		err = fmt.Errorf("%w: %s at %s is now federation %s in epoch %d: somebody has put another tree in the place of this broker's, or that server is of another ensemble: "+
			"name the chroot and the servers of its own", ErrIdentity, path, l.c.zk.Server(), c.Federation, c.Epoch)
	}
	return err
}

// found makes the tree in one transaction, so that it is there or not. The claim
// is saved first: a founder that crashed founds again.
func (l *Log) found(ctx context.Context, m *member) (*member, *tree.Charter, error) {
	if m == nil {
		id := hex.EncodeToString(l.cfg.Federation[:])
		m = l.member(tree.Charter{Federation: id, Lineage: id})
		m.Founder = true
		if err := m.save(l.cfg.Dir); err != nil {
			return nil, nil, err
		}
	}
	c := &tree.Charter{Version: tree.Version, Federation: m.Federation, Lineage: m.Lineage}
	return m, c, createTree(ctx, l.c, *c, tree.Pointer{}, nil)
}

// finishFounding compares this member's data with the tree. A founder's claim is done with
// then: were the tree deleted, it must not found the same federation once more.
func (l *Log) finishFounding(m *member, c tree.Charter) error {
	err := m.checkTree(c, l.c.root+tree.FederationPath)
	if err == nil && m.Founder {
		m.Founder = false
		err = m.save(l.cfg.Dir)
	}
	return err
}

func (l *Log) member(c tree.Charter) *member {
	return &member{
		Version: 1, Site: l.cfg.Site, Node: hex.EncodeToString(l.cfg.Node[:]), Federation: c.Federation,
		Epoch: c.Epoch, Lineage: c.Lineage,
	}
}

// join brings the state up to date and asks it whether it admits this node.
func (l *Log) join(ctx context.Context, c tree.Charter) error {
	if l.cfg.Federation != [16]byte{} && l.cfg.Federation != l.Federation() {
		return fmt.Errorf("join %s: %w: it is federation %s, not %x", l.c.root, coord.ErrForeign, c.Federation, l.cfg.Federation)
	}
	err := l.applyAll(ctx)
	if err != nil {
		return err
	}
	l.machine.with(func(m coord.Machine) { err = m.Admit(l.cfg.Site, l.cfg.Node) })
	if err != nil {
		return fmt.Errorf("join %s: %w: %w", l.c.root, coord.ErrJoinRefused, err)
	}
	return l.member(c).save(l.cfg.Dir)
}

// applyAll applies all that is in the tree now.
func (l *Log) applyAll(ctx context.Context) error {
	rd := &reader{l: l, w: newWatches(), ahead: 1}
	for {
		caught, err := rd.advance(ctx)
		if err == nil && caught {
			caught, err = l.endsHere(ctx)
		}
		if caught || err != nil {
			return err
		}
	}
}

// enlist makes this node a member that stands for leader.
func (l *Log) enlist(ctx context.Context) error {
	mine := tree.Encode(tree.MemberRecord{Node: hex.EncodeToString(l.cfg.Node[:])})
	for _, node := range []struct {
		path string
		data []byte
	}{{tree.MembersPath, mine}, {tree.VotersPath, nil}} {
		if err := l.c.ensure(ctx, node.path+"/"+l.cfg.Site, node.data); err != nil {
			return err
		}
	}
	n, err := l.c.get(ctx, tree.MembersPath+"/"+l.cfg.Site)
	if err != nil {
		return err
	}
	if string(n.data) == string(mine) {
		return nil
	}
	if err = l.applyAll(ctx); err != nil { // the key may have been replaced after the last snapshot here
		return err
	}
	if l.succeeds(n.data) {
		_, err = l.c.write(ctx, l.c.set(tree.MembersPath+"/"+l.cfg.Site, mine, n.stat.Version))
		return err
	}
	return fmt.Errorf("join: %w: %s%s/%s is another node: site %s runs with another data directory; choose another name",
		coord.ErrJoinRefused, l.c.root, tree.MembersPath, l.cfg.Site, l.cfg.Site)
}

// succeeds reports whether the federation has this node in the place of a site's former one, whose record this is: its
// key was replaced.
func (l *Log) succeeds(record []byte) (yes bool) {
	var former tree.MemberRecord
	if tree.Parse(tree.MembersPath, record, &former) != nil {
		return false
	}
	id, err := hex.DecodeString(former.Node)
	if err != nil || len(id) != 16 {
		return false
	}
	l.machine.with(func(m coord.Machine) {
		yes = m.Admit(l.cfg.Site, [16]byte(id)) != nil && m.Admit(l.cfg.Site, l.cfg.Node) == nil
	})
	return yes
}

// deleteFormerEphemerals deletes the ephemerals of this member's former life, whose session would
// hold the leadership, and everybody up, until it expires. The lock of the data
// directory says that it is over; were it not, the fence would hold it back.
func (l *Log) deleteFormerEphemerals(ctx context.Context) error {
	for _, path := range []string{
		tree.LeaderPath, tree.PresentPath + "/" + l.cfg.Site, unfitPath(l.cfg.Site),
		unreachedPath(l.cfg.Site), stuckPath(l.cfg.Site),
	} {
		n, err := l.c.get(ctx, path)
		if err != nil {
			return err
		}
		if !n.found || !strings.HasPrefix(string(n.data), l.cfg.Site+"/") {
			continue
		}
		if err = l.c.deleteHere(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// start runs the goroutines.
func (l *Log) start() {
	l.Mux.Handle(relay.KindForward, l.countConnections(l.Calls.Serve))
	l.Mux.Handle(relay.KindFeed, l.countConnections(l.serveFeed))
	l.Mux.Handle(relay.KindRaft, refuse)
	l.Mux.Handle(relay.KindJoin, l.refuseJoin)
	l.startComparing()
	l.Mux.Serve()
	l.Calls.Start()
	for _, run := range []func(context.Context){
		l.watchRoles, l.runTicker, l.followLog, l.runReceiver,
		l.compactWhileLeading, l.becomeCurrent,
	} {
		l.WG.Go(func() { run(l.Ctx) })
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
	answer := tree.Encode(map[string]string{
		"code": "refused", "text": "this federation is on ZooKeeper: start with --coordination zookeeper and --zk " + l.cfg.Place.String(),
	})
	_, _ = conn.Write(relay.EndFrame(append(relay.Frame(nil), answer...))) // it may have gone
}

// maxQuestion bounds the question of a join, in bytes.
const maxQuestion = 8 << 10

// refuse is for connections of another backend.
func refuse(conn net.Conn, _ relay.Preamble) { _ = conn.Close() }
