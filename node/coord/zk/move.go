package zk

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// A federation moves to another backend through a file (package statefile). Export
// seals the tree: /lead says so, in a new version of it, so no leader of before can
// append and none can follow. What is read then is all that there will ever be.
// Reopen takes the seal away. Found is the other direction.

// Visitor is who works on a tree in which no broker is, with a site's data.
type Visitor struct {
	Place   Place
	Machine coord.Machine // empty: it takes the state
	Logger  zerolog.Logger
	// Site signs what is written, and knows by whom the others' signatures are; a nil Identity believes the tree.
	Site     string
	Identity *relay.Identity
}

// Sealed is what an export says of a tree.
type Sealed struct {
	Federation [16]byte
	Epoch      uint64
	Lineage    [16]byte
	Term       uint64 // of the last leader
	Moved      string // id of the export
}

// Export seals a tree in which no broker is, brings the machine to its last entry,
// and calls write. A sealed tree can be exported again, under the same id. Errors:
// coord.ErrRunning, ErrUnreachable, ErrNoTree, ErrDenied, ErrVersion, ErrDamaged.
func Export(ctx context.Context, v Visitor, write func(Sealed) error) error {
	p := v.Place
	err := atTree(ctx, v, func(ctx context.Context, l *Log, c *tree.Charter) error {
		s := sealed(c)
		for {
			var err error
			session := l.c.zk.SessionID()
			if s.Term, s.Moved, err = l.seal(ctx); err != nil {
				return err
			}
			if err = l.applyAll(ctx); err != nil {
				return err
			}
			// A new session may have begun at a server that lags behind the seal (find).
			if l.c.zk.SessionID() == session {
				return write(s)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("export %s: %w", p, err)
	}
	return nil
}

// Reopen takes the seal of an export away, so that the brokers go on here; the
// file must be imported nowhere: check is asked once the machine is at the last
// entry. A tree that is not sealed is left alone. Errors: those of Export.
func Reopen(ctx context.Context, v Visitor, check func(Sealed) error) error {
	p := v.Place
	err := atTree(ctx, v, func(ctx context.Context, l *Log, c *tree.Charter) error {
		now, version, err := l.leadRecord(ctx)
		if err != nil || now.Moved == "" {
			return err
		}
		if err = l.applyAll(ctx); err != nil {
			return err
		}
		s := sealed(c)
		s.Term, s.Moved = now.Term, now.Moved
		if err = check(s); err != nil {
			return err
		}
		now = tree.LeadRecord{Term: now.Term}
		return l.c.writeLeadRecord(ctx, now, version)
	})
	if err != nil {
		return fmt.Errorf("reopen %s: %w", p, err)
	}
	return nil
}

// sealed returns what a charter says of a tree.
func sealed(c *tree.Charter) Sealed {
	s := Sealed{Epoch: c.Epoch}
	s.Federation, _ = tree.ParseID(c.Federation) // parseCharter has read both
	s.Lineage, _ = tree.ParseID(c.Lineage)
	return s
}

// atTree connects to a federation's tree, as no member.
func atTree(ctx context.Context, v Visitor, f func(context.Context, *Log, *tree.Charter) error) error {
	p := v.Place
	if err := p.checkAccess(); err != nil {
		return err
	}
	l := &Log{
		Member: &facade.Member{}, cfg: Config{Config: facade.Config{Site: v.Site, Machine: v.Machine}, Place: p},
		t: timingOf(LAN), log: v.Logger, machine: machine{m: v.Machine}, who: v.Identity,
	}
	var err error
	if l.c, err = connect(p, nil, v.Logger); err != nil {
		return err
	}
	defer l.c.close()
	l.c.patience = l.t.open // not of all calls together: between two a state may be taken in for long
	c, err := l.c.readCharter(ctx)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: %s%s does not exist: check the chroot", ErrNoTree, l.c.root, tree.FederationPath)
	}
	if err == nil {
		l.line, _ = tree.ParseID(c.Lineage) // parseCharter has read it
		l.machine.line = l.line
		l.c.mark = tree.MarkPath(c.Lineage)
		err = f(ctx, l, c)
	}
	return l.c.unreachable(p, err)
}

// leadRecord reads /lead; see readLead.
func (l *Log) leadRecord(ctx context.Context) (now tree.LeadRecord, version int32, err error) {
	n, err := l.c.get(ctx, tree.LeadPath)
	if err == nil && !n.found {
		err = fmt.Errorf("%w: %s%s is missing", tree.ErrDamaged, l.c.root, tree.LeadPath)
	}
	if err != nil {
		return now, 0, err
	}
	return l.readLead(n.data), n.stat.Version, nil
}

// writeLeadRecord replaces /lead, unless somebody else does. Sent again after a lost answer
// it meets what it wrote itself.
func (c *client) writeLeadRecord(ctx context.Context, now tree.LeadRecord, version int32) error {
	data := tree.Encode(now)
	ops, at := c.withMarkCheck(c.set(tree.LeadPath, data, version)), -1
	_, err := c.retryRead(ctx, "write", tree.LeadPath, func() (node, error) {
		res, err := c.multi(ops)
		at = failedAt(res, err)
		return node{}, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode) && at == 1:
		return c.otherTreeError()
	case !errors.Is(err, zk.ErrBadVersion):
		return err
	}
	is, err := c.get(ctx, tree.LeadPath)
	if err == nil && !bytes.Equal(is.data, data) {
		err = fmt.Errorf("%w: one takes %s%s just now: stop all brokers first", coord.ErrRunning, c.root, tree.LeadPath)
	}
	return err
}

// seal has nobody append any more; it may be repeated.
func (l *Log) seal(ctx context.Context) (term uint64, id string, err error) {
	now, version, err := l.leadRecord(ctx)
	if err != nil || now.Moved != "" {
		return now.Term, now.Moved, err
	}
	if err = l.c.checkNoBroker(ctx); err != nil {
		return 0, "", err
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	now = tree.LeadRecord{Term: now.Term, Moved: hex.EncodeToString(b[:])}
	l.signLead(&now)
	return now.Term, now.Moved, l.c.writeLeadRecord(ctx, now, version)
}

// checkNoBroker returns coord.ErrRunning if a broker is connected.
func (c *client) checkNoBroker(ctx context.Context) error {
	here, err := c.children(ctx, tree.PresentPath)
	switch {
	case err != nil:
		return err
	case len(here.children) > 0:
		here.children = tree.Sites(here.children)
		slices.Sort(here.children)
		return fmt.Errorf("%w: %s %s connected (%s%s): stop all brokers first; one that died is gone after its session's timeout",
			coord.ErrRunning, strings.Join(here.children, " "), pluralVerb(len(here.children)), c.root, tree.PresentPath)
	}
	holder, err := c.get(ctx, tree.LeaderPath)
	if err == nil && holder.found {
		err = fmt.Errorf("%w: one holds %s%s: stop all brokers first", coord.ErrRunning, c.root, tree.LeaderPath)
	}
	return err
}

func pluralVerb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// checkOpen refuses a sealed tree.
func (l *Log) checkOpen(ctx context.Context) error {
	now, _, err := l.leadRecord(ctx)
	if err == nil {
		err = movedError(now, l.c.root)
	}
	return err
}

// movedError says why a sealed tree is not used.
func movedError(l tree.LeadRecord, root string) error {
	if l.Moved == "" {
		return nil
	}
	return fmt.Errorf("%w: %s%s (export %s): start the broker on the backend that it was imported into; "+
		"if it was imported nowhere, go on here with cloudshare state reopen", coord.ErrMoved, root, tree.LeadPath, l.Moved)
}
