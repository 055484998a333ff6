package broker

import (
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord"
)

// Status tells what the broker knows; with hash it hashes the state, which
// takes time in a large federation but holds nothing up.
func (b *Broker) Status(hash bool) node.Status {
	log := b.cfg.Log.Status()
	st := node.Status{
		Site: b.cfg.Site, Lead: log.Lead, Term: log.Term, Voters: log.Voters, Members: log.Members,
		Version: b.cfg.Version,
	}
	b.cfg.Replica.View(func(s *fsm.State) {
		st.Index = s.Index()
		st.Federation = uuid.UUID(s.Federation()).String()
	})
	if hash {
		index, sum := b.cfg.Replica.Hash()
		st.HashIndex, st.Hash = index, hex.EncodeToString(sum[:])
	}
	for _, h := range b.cfg.Handlers {
		trouble := b.core.MachineTroubles().Of(h.Name(), executor.Boottime())
		st.Handlers = append(st.Handlers, node.HandlerStatus{Name: h.Name(), Status: h.Status(), Trouble: trouble})
	}
	st.Incarnation = b.registrar.incarnation()
	st.Estimates = b.Calibration()
	st.Compared = b.compared()
	st.ShutOut = b.registrar.shutOut()
	st.LogTimeAhead = b.logTime.now()
	if l, ok := b.cfg.Log.(coord.Placed); ok {
		st.Placement = l.Placement()
	}
	if b.cfg.Outputs != nil {
		st.Outputs = b.cfg.Outputs()
		home := b.HomeLogs()
		st.Outputs.Brought, st.Outputs.Waiting = home.Brought, home.Waiting
	}
	return st
}
