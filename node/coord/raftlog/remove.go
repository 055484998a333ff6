package raftlog

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"
)

// Remove implements coord.Log. The last voter cannot be removed.
func (l *Log) Remove(ctx context.Context, site string) error {
	if _, err := l.ask(ctx, frameRemove, site, func(ctx context.Context) answer { return l.removeHere(ctx, site) }); err != nil {
		return fmt.Errorf("remove site %s from the group: %w", site, err)
	}
	return nil
}

// removeHere removes at the lead. A lead does not remove itself: it hands over
// and lets the next one do it.
func (l *Log) removeHere(_ context.Context, site string) answer {
	if !l.seq.leads() {
		return answer{code: answerRetry}
	}
	voters, suffrage := 0, raft.ServerSuffrage(-1)
	for _, s := range l.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
		if string(s.ID) == site {
			suffrage = s.Suffrage
		}
	}
	switch {
	case suffrage < 0:
		return answer{code: answerOK}
	case suffrage == raft.Voter && voters == 1:
		return answer{code: answerRefused, text: "site " + site + " is the only voter: another site must become one first"}
	case site == l.cfg.Site:
		l.handOver()
		return answer{code: answerRetry}
	}
	if err := l.raft.RemoveServer(raft.ServerID(site), 0, l.t.enqueue).Error(); err != nil {
		return answer{code: answerRetry}
	}
	return answer{code: answerOK}
}
