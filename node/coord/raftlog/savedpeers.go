package raftlog

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// SavedPeers returns where the other members are by a stopped member's data, which it neither replays nor changes.
// Errors: ErrLocked, ErrNoData, ErrIdentity.
func SavedPeers(o Offline) (list []relay.Peer, err error) {
	err = o.visit("read the members", func(s *survivor) error {
		c, failed := s.newestConfiguration()
		for _, m := range c.Servers {
			if string(m.ID) != s.member.Site {
				list = append(list, relay.Peer{Site: string(m.ID), Addr: transport.HostPort(m.Address)})
			}
		}
		return failed
	})
	return list, err
}

// newestConfiguration returns the last one that was stored, committed or not: the log's, else the newest snapshot's.
func (s *survivor) newestConfiguration() (c raft.Configuration, err error) {
	first, err := s.store.FirstIndex()
	if err != nil {
		return c, fmt.Errorf("read first log index: %w", err)
	}
	last, err := s.store.LastIndex()
	if err != nil {
		return c, fmt.Errorf("read last log index: %w", err)
	}
	for i := last; i > 0 && i >= first; i-- {
		var l raft.Log
		if err = s.store.GetLog(i, &l); err != nil {
			return c, fmt.Errorf("read log entry %d: %w", i, err)
		}
		if l.Type == raft.LogConfiguration {
			return raft.DecodeConfiguration(l.Data), nil
		}
	}
	list, err := s.snaps.List() // newest first
	if err != nil || len(list) == 0 {
		return c, err
	}
	return list[0].Configuration, nil
}
