package raftlog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Voters that were thought lost for good may come back after the federation was
// recovered without them, and are still a quorum of the former epoch. The members
// of the later epoch refuse their connections without a word that raft would
// understand. So a member asks those that are silent who they are, before it
// sends anything at all and then as long as they stay silent, and stops if the
// federation is in a later epoch. What it cannot reach it cannot hear of: see
// DESIGN.md.

// maxAskedMembers is how many members one round asks.
const maxAskedMembers = 16

// watchForNewerEpoch runs until ctx ends.
func (l *Log) watchForNewerEpoch(ctx context.Context) {
	l.askForNewerEpoch(ctx, 2*l.t.heartbeat)
	l.stream.Begin()
	runEvery(ctx, l.t.epochCheck, func() { l.askForNewerEpoch(ctx, l.t.rpc) })
}

// askForNewerEpoch asks the silent members, some of them if there are many, and fails this
// one if the federation has left it behind.
func (l *Log) askForNewerEpoch(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range l.silentMembers() {
		wg.Go(func() {
			a, err := l.dialer.join(ctx, relay.Peer{Site: string(s.ID), Addr: transport.HostPort(s.Address)},
				joinRequest{Who: true})
			if err != nil {
				return
			}
			theirs, err := parseLineage(a.Federation, a.Lineage, a.Epoch)
			switch {
			case err != nil || theirs.federation != l.line.federation || theirs == l.line ||
				theirs.epoch < l.line.epoch:
			case theirs.epoch > l.line.epoch && !l.mayVote(string(s.ID)):
				l.log.Error().Str("member", a.Site).Uint64("epoch", theirs.epoch).
					Msg("a site without a vote says that the federation was recovered without this one: it is not believed; " +
						"if it is true, stop this broker and run cloudshare recover --follow on its data")
			case theirs.epoch > l.line.epoch:
				l.fail(
					fmt.Errorf("%w; site %s says so, by its key: if that is not true, start with --deny %[2]s, and have it banned",
						l.line.leftBehindError(theirs, transport.HostPort(s.Address)), a.Site),
				)
			default:
				l.log.Error().Err(l.line.admits(theirs, l.Addr())).Str("member", a.Site).Msg("two epochs of one number")
			}
		})
	}
	wg.Wait()
}

// mayVote reports whether a site's word on the epoch counts: one that has no vote does not decide how the federation
// goes
// on, and any member's word would stop all others.
func (l *Log) mayVote(site string) (may bool) {
	l.machine.call(func(m coord.Machine) { may = coord.MayVote(m, site) })
	return may
}

// silentMembers returns the other members that this one has not heard of: none while it
// follows a leader, those that do not answer while it leads, else all. Voters come
// first.
func (l *Log) silentMembers() []raft.Server {
	if to, self := l.leader(); !to.None() && !self {
		return nil
	}
	leads := l.raft.State() == raft.Leader
	var voters, others []raft.Server
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		_, heard := l.trans.Follower(s.ID)
		switch {
		case string(s.ID) == l.cfg.Site, leads && time.Since(heard) <= l.t.epochCheck:
		case s.Suffrage == raft.Voter:
			voters = append(voters, s)
		default:
			others = append(others, s)
		}
	}
	rand.Shuffle(len(others), func(i, k int) { others[i], others[k] = others[k], others[i] })
	all := slices.Concat(voters, others)
	return all[:min(len(all), maxAskedMembers)]
}
