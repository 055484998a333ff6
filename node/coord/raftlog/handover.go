package raftlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/store"
	"github.com/cloudshare/cloudshare/node/coord/raftlog/transport"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// A leader hands the leadership over by itself for four reasons: its broker says that
// it should not lead (SetUnfit), its disk is much slower than that of a voter, another voter
// is much nearer to a majority (far.go), and it has led for a turn (turn.go). All are bounded
// (facade.Limits), and the voter is asked first.

// reason of a handover, as metrics call it.
type reason string

const (
	reasonUnfit reason = "unfit"
	reasonDisk  reason = "slow_disk"
	reasonFar   reason = "far"
	reasonTurn  reason = "turn"
)

// diskLimits are low: a slow disk costs time, and nothing else.
var diskLimits = facade.Limits{First: 30 * time.Second, Longest: 10 * time.Minute, Hourly: 6}

// handoverCounts are this member's handovers by reason.
type handoverCounts map[reason]*facade.Attempts

func newHandoverCounts() handoverCounts {
	return handoverCounts{
		reasonUnfit: {Limits: facade.UnfitLimits}, reasonDisk: {Limits: diskLimits},
		reasonFar: {Limits: farLimits}, reasonTurn: {Limits: facade.UnfitLimits},
	}
}

// voterDisk is another voter as the leader sees it.
type voterDisk struct {
	id   raft.ServerID
	addr raft.ServerAddress
	// sync is the median time from an append request with entries to its answer,
	// which a follower gives when it has synced them: at least its sync latency.
	sync  time.Duration
	alone time.Duration // sync without what waited there before
	known bool          // sync was measured
	ready bool          // it answers, and has what was committed at the look before
}

const (
	// A leader's disk is slow if its syncs take slowFactor times those of a voter,
	// and slowLeast more.
	slowFactor = 4
	slowLeast  = 20 * time.Millisecond
	// unmeasured stands for the latency of a voter that answers nothing.
	unmeasured = time.Hour
)

// chooseFasterVoter returns the voter with the quickest disk if the leader's, whose syncs take
// own, is slow beside it, and if entries would be committed in half the time: an
// entry needs the leader's sync and then those of enough others.
func chooseFasterVoter(own time.Duration, others []voterDisk) (successor voterDisk, ok bool) {
	for _, v := range others {
		if v.ready && v.known && (!ok || v.sync < successor.sync) {
			successor, ok = v, true
		}
	}
	if !ok || own < slowFactor*successor.sync || own-successor.sync < slowLeast {
		return voterDisk{}, false
	}
	now, then := make([]time.Duration, 0, len(others)), make([]time.Duration, 0, len(others))
	for _, v := range others {
		took := v.sync
		if !v.known {
			took = unmeasured
		}
		now = append(now, took)
		if v.id == successor.id {
			took = own
		}
		then = append(then, took)
	}
	before, after := own+quorumLatency(now), successor.sync+quorumLatency(then)
	if 2*after > before {
		return voterDisk{}, false
	}
	return successor, true
}

// quorumLatency returns how long the others take that complete a quorum with the leader.
func quorumLatency(others []time.Duration) time.Duration {
	slices.Sort(others)
	return others[(len(others)+1)/2-1]
}

// handoverTracker is what the leader's looks have seen. One goroutine owns it.
type handoverTracker struct {
	before uint64         // commit index at the look before; 0 = none in this term
	slow   time.Time      // since when the disk is slow; zero = it is not
	far    time.Time      // since when another voter is much nearer to a majority; zero = none is
	better time.Time      // since when one of those would be better by its disk, too; zero = none would
	asked  time.Time      // when voters were last asked whether they are fit
	turn   time.Time      // since when this member's turn lasts; zero = it does not lead
	passed string         // the voter that was to lead after this turn, and did not; "" = none
	said   relay.Reminder // that none is
}

// leadership is how a leader gives it away. No field changes once raft is open; handed and
// given have locks of their own.
type leadership struct {
	cfg    *Config
	member *facade.Member
	t      timing
	log    zerolog.Logger
	raft   *raft.Raft
	store  *store.Store
	trans  *transport.Transport
	dialer dialer
	trips  *tripWatch

	handed handoverCounts
	given  leadershipTransfers
}

// leadOrHandOver looks whether this member should go on leading.
func (ld *leadership) leadOrHandOver(ctx context.Context, h *handoverTracker) {
	if !ld.member.Calls.Leads() {
		*h = handoverTracker{asked: h.asked, said: h.said}
		return
	}
	now, commit := time.Now(), ld.raft.CommitIndex()
	others := ld.otherVoters(h.before, now)
	h.before = commit
	if len(others) == 0 {
		return
	}
	if ld.member.UnfitWhy() != "" {
		ld.handOverUnfit(ctx, h, others, now)
		return
	}
	ld.handOverSlow(ctx, h, others, now)
	ld.handOverFar(ctx, h, others, now)
	ld.handOverByTurn(ctx, h, others, now)
}

// otherVoters returns the voters beside this one, as this leader sees them.
func (ld *leadership) otherVoters(before uint64, now time.Time) (out []voterDisk) {
	for _, s := range ld.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Voter || string(s.ID) == ld.cfg.Site {
			continue
		}
		v := voterDisk{id: s.ID, addr: s.Address}
		match, at := ld.trans.Follower(s.ID)
		v.ready = before != 0 && match >= before && now.Sub(at) <= ld.t.heartbeat+ld.t.promote
		v.sync, v.known = ld.trans.Syncs(s.ID, now)
		v.alone, _ = ld.trans.Alone(s.ID, now) // as often measured
		out = append(out, v)
	}
	return out
}

// handOverUnfit hands over to the voter with the quickest disk that is fit.
func (ld *leadership) handOverUnfit(ctx context.Context, h *handoverTracker, others []voterDisk, now time.Time) {
	if now.Sub(h.asked) < facade.UnfitLimits.First || !ld.handed[reasonUnfit].Due(now) {
		return
	}
	h.asked = now
	slices.SortFunc(others, func(a, b voterDisk) int {
		quick := func(v voterDisk) time.Duration {
			if v.known {
				return v.sync
			}
			return unmeasured
		}
		return cmp.Or(cmp.Compare(quick(a), quick(b)), cmp.Compare(a.id, b.id))
	})
	for _, v := range others {
		if v.ready && ld.asksToLead(ctx, v, reasonUnfit) {
			ld.log.Warn().Str("because", ld.member.UnfitWhy()).Str("to", string(v.id)).Msg("this leader is not fit: handing over")
			ld.transferTo(v, reasonUnfit)
			return
		}
	}
	if h.said.Due("", now) {
		ld.log.Warn().Str("because", ld.member.UnfitWhy()).
			Msg("this leader is not fit, and no other voter is fit, connected and up to date: it leads on, and judges no lost site")
	}
}

// handOverSlow hands over if the disk was slow at each look for long enough.
func (ld *leadership) handOverSlow(ctx context.Context, h *handoverTracker, others []voterDisk, now time.Time) {
	own, known := ld.store.Latency(now)
	others = ld.hastening(others, now)
	successor, slow := chooseFasterVoter(own, others)
	if !calm(&h.slow, known && slow && !noSlowDiskHandover, now, ld.t.slow) || !ld.handed[reasonDisk].Due(now) {
		return
	}
	h.slow = now // look again as long before voters are asked again
	for ; slow && !ld.asksToLead(ctx, successor, reasonDisk); successor, slow = chooseFasterVoter(own, others) {
		i := slices.IndexFunc(others, func(v voterDisk) bool { return v.id == successor.id })
		others[i].ready = false // the next best is asked
	}
	if !slow {
		return
	}
	ld.log.Warn().Dur("sync_ms", own).Dur("its_sync_ms", successor.sync).Str("to", string(successor.id)).
		Msg("the disk of this leader is slow beside a voter's: handing over")
	ld.transferTo(successor, reasonDisk)
}

// asksToLead asks a voter whether it would lead. One that has handed over a moment ago since its disk is slow would do
// so again, and so would one that is far from a majority.
func (ld *leadership) asksToLead(ctx context.Context, v voterDisk, why reason) bool {
	ctx, cancel := context.WithTimeout(ctx, ld.t.rpc/2)
	defer cancel()
	a, err := ld.dialer.join(ctx, relay.Peer{Site: string(v.id), Addr: transport.HostPort(v.addr)},
		joinRequest{Who: true})
	return err == nil && a.Site == string(v.id) && !a.Resting && !a.Unfit && (why == reasonUnfit || !a.Slow) &&
		(why == reasonUnfit || why == reasonDisk || !a.Far)
}

// describeSelf answers a leader that looks for voters, or for another leader.
func (l *Log) describeSelf(q joinRequest) joinReply {
	a := joinReply{
		Code: joinOK, Resting: l.Resting() || l.stopping.Load(), Unfit: l.UnfitWhy() != "",
		Slow: !l.leadership.handed[reasonDisk].Due(time.Now()), Far: !l.leadership.handed[reasonFar].Due(time.Now()),
	}
	if q.Trips != "" && len(q.Trips) <= maxInstance {
		a.Trips, a.Asked = l.leadership.trips.words(time.Now()), q.Trips
	}
	return a
}

var _ coord.Measured = (*Log)(nil)

// Figures implements coord.Measured.
func (l *Log) Figures() coord.Figures {
	f := coord.Figures{Syncs: map[string]time.Duration{}, HandOvers: map[string]uint64{}, Held: l.Calls.Held()}
	for why, a := range l.leadership.handed {
		f.HandOvers[string(why)] = a.Total()
	}
	now := time.Now()
	if d, ok := l.store.Latency(now); ok {
		f.Syncs[l.cfg.Site] = d
	}
	if !l.Calls.Leads() {
		return f
	}
	for _, v := range l.leadership.otherVoters(0, now) {
		if v.known {
			f.Syncs[string(v.id)] = v.sync
		}
	}
	return f
}

// transferTo makes a voter the leader, by raft's own transfer if raft's main goroutine
// is free for it in time, else by telling the voter to stand.
func (ld *leadership) transferTo(v voterDisk, why reason) {
	ld.handed[why].Note(time.Now())
	if ld.cfg.Hooks.HandOver != nil {
		ld.cfg.Hooks.HandOver(string(why))
	}
	done := ld.given.begin(func() raft.Future { return ld.raft.LeadershipTransferToServer(v.id, v.addr) })
	wait := time.NewTimer(ld.t.stall)
	defer wait.Stop()
	var err error
	select {
	case err = <-done:
	case <-wait.C:
		err = transport.ErrMuted
	case <-ld.member.Ctx.Done():
		return
	}
	if err == nil || ld.raft.State() != raft.Leader {
		return
	}
	ld.log.Debug().Err(err).Str("to", string(v.id)).Msg("raft did not hand over: telling the voter to stand")
	ld.requestElection(v.id, v.addr)
}
