package raftlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
)

// survey replays the data and asks the others.
func (s *survivor) survey(ctx context.Context) (Survey, error) {
	v := Survey{
		Site: s.member.Site, Federation: s.line.federation, Epoch: s.line.epoch,
		Unfinished: s.member.Unfinished != "", Lineage: s.line.id, Moved: s.member.Moved,
	}
	m := s.machine()
	c, err := s.replay(m, &v)
	if err != nil {
		return v, err
	}
	v.Entry = m.m.Index()
	for _, p := range c.Servers {
		v.Peers = append(v.Peers, Peer{
			Site: string(p.ID), Addr: transport.HostPort(p.Address),
			Voter: p.Suffrage == raft.Voter,
		})
	}
	slices.SortFunc(v.Peers, func(a, b Peer) int { return strings.Compare(a.Site, b.Site) })
	if v.Unfinished { // the log may name this member only by now
		v.Peers = slices.Clone(s.member.Former.Peers)
	}
	return v, s.poll(ctx, v.Peers)
}

// poll asks the other members who they are. Whoever is in a later epoch than the
// data was lives in it, be it of the number that an unfinished recovery would take.
func (s *survivor) poll(ctx context.Context, peers []Peer) error {
	ctx, cancel := context.WithTimeout(ctx, timingOf(LAN).rpc)
	defer cancel()
	errs := make([]error, len(peers))
	var wg sync.WaitGroup
	for i := range peers {
		p := &peers[i]
		if p.Site == s.member.Site {
			continue
		}
		wg.Go(func() {
			theirs, err := s.askLineage(ctx, s.member.Site, p.Addr)
			switch {
			case err != nil || theirs.federation != s.former.federation:
			case theirs == s.former:
				p.Answers = true
			case theirs.epoch > s.former.epoch:
				errs[i] = s.former.leftBehindError(theirs, p.Addr)
			case theirs.epoch == s.former.epoch:
				errs[i] = s.former.admits(theirs, p.Addr)
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i] // the others say the same
	}
	return nil
}

// machine drives a fresh state machine outside raft.
func (s *survivor) machine() *machine {
	begun := make(chan struct{})
	close(begun)
	return &machine{
		m: s.Machine(), calls: noCalls{}, begun: begun,
		fail: func(error) {}, onApply: func(*raft.Log) {}, onConfig: func() {},
	}
}

// replay brings a machine to the end of the stored log, what may not have been
// committed included, as raft.RecoverCluster does; it returns the newest
// configuration.
func (s *survivor) replay(m *machine, v *Survey) (raft.Configuration, error) {
	c, err := s.restore(m, v)
	if err != nil {
		return c, err
	}
	last, err := s.store.LastIndex()
	if err != nil {
		return c, fmt.Errorf("read last log index: %w", err)
	}
	for i := v.LastIndex + 1; i <= last; i++ {
		var l raft.Log
		if err := s.store.GetLog(i, &l); err != nil {
			return c, fmt.Errorf("read log entry %d: %w", i, err)
		}
		v.LastIndex, v.LastTerm = l.Index, l.Term
		switch l.Type {
		case raft.LogConfiguration:
			c = raft.DecodeConfiguration(l.Data)
		case raft.LogCommand:
			m.Apply(&l)
		case raft.LogNoop, raft.LogBarrier, raft.LogAddPeerDeprecated, raft.LogRemovePeerDeprecated:
		}
		if m.broken != nil {
			return c, m.broken
		}
	}
	return c, nil
}

// restore loads the newest snapshot that can be read, if there is any.
func (s *survivor) restore(m *machine, v *Survey) (c raft.Configuration, err error) {
	list, err := s.snaps.List()
	if err != nil {
		return c, fmt.Errorf("list snapshots: %w", err)
	}
	var errs []error
	for _, meta := range list {
		_, r, err := s.snaps.Open(meta.ID)
		if err == nil {
			err = m.Restore(r)
		}
		if err == nil {
			v.LastIndex, v.LastTerm = meta.Index, meta.Term
			return meta.Configuration, nil
		}
		errs = append(errs, fmt.Errorf("snapshot %s: %w", meta.ID, err))
	}
	return c, errors.Join(errs...)
}
