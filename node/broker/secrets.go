package broker

import (
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/own"
	"github.com/cloudshare/cloudshare/node/seal"
)

const (
	// secretsEvery is how often it is looked whether secrets of before are needed, soon the first time.
	secretsEvery, secretsSoon = time.Hour, time.Minute
	// secretsLook bounds the jobs that are copied of the state at a time.
	secretsLook = 1000
)

// sealerOf returns the sealer of a site by its secrets, the one of now first.
func sealerOf(secrets [][32]byte, whose seal.Whose) *seal.Sealer {
	list := make([]seal.Secret, len(secrets))
	for i := range secrets {
		list[i] = secrets[i]
	}
	return seal.NewOf(list, whose)
}

// secretKeeper has secrets forgotten that no job of this site is sealed with any more.
type secretKeeper struct {
	b      *Broker
	sealer *seal.Sealer
	last   []bool // what DropSecrets was told last
}

// run looks until the broker ends, or only the secret of now is left.
func (k *secretKeeper) run() {
	if k.sealer.Secrets() == 1 || k.b.cfg.DropSecrets == nil {
		return
	}
	for wait := secretsSoon; ; wait = secretsEvery {
		select {
		case <-time.After(wait):
		case <-k.b.ctx.Done():
			return
		}
		if k.b.Ready() != nil {
			continue
		}
		if k.drop() {
			return
		}
	}
}

// drop has those forgotten that are not needed; true: none of before is left.
func (k *secretKeeper) drop() bool {
	used, err := k.used()
	fresh := err == nil && !slices.Equal(used, k.last)
	if fresh && slices.Contains(used, false) {
		if err = k.b.cfg.DropSecrets(used); err == nil {
			k.last = used
			k.b.cfg.Logger.Info().Int("left", count(used)).
				Msg("forgot secrets of before, with which no job of this site is sealed any more")
		}
	}
	if err != nil {
		k.b.cfg.Logger.Warn().Err(err).Msg("secrets of before that jobs were sealed with are kept: trying again within the hour")
	}
	return err == nil && count(used) == 1
}

func count(used []bool) (n int) {
	for _, u := range used {
		if u {
			n++
		}
	}
	return n
}

// used returns which secrets jobs of this site are sealed with, those that have ended and are still shown included. A
// job that is published meanwhile is found in the state, which is read last.
func (k *secretKeeper) used() ([]bool, error) {
	used := make([]bool, k.sealer.Secrets())
	used[0] = true
	see := func(payload []byte) {
		if n, err := k.sealer.Place(payload); err == nil {
			used[n] = true
		}
	}
	for below := uint64(0); ; {
		var got []own.Record
		var rest uint64
		err := k.b.query(k.b.ctx, func(c *core.Core) { got, rest = c.Own().Records(below, "", own.Steps) })
		if err != nil {
			return nil, err
		}
		for i := range got {
			see(got[i].Spec.Payload)
		}
		if below = rest; rest == 0 {
			break
		}
	}
	for before := uint64(0); ; {
		var views []fsm.JobView
		k.b.cfg.Replica.View(func(s *fsm.State) {
			views, before = s.Jobs(fsm.JobFilter{Owner: k.b.cfg.Site}, before, secretsLook)
		})
		for i := range views {
			see(views[i].Spec.Payload)
		}
		if before == 0 {
			return used, nil
		}
	}
}
