package lend

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/node/core/turn"
	"github.com/cloudshare/cloudshare/node/record"
)

// Drain is a site's wish to run nothing for others, and, with Own, nothing for
// itself either. What runs already goes on. It survives restarts.
type Drain struct {
	On  bool `json:"on"`
	Own bool `json:"own"`
}

var keyDrain = []byte("drain")

// PausesHome reports whether nothing is started at home now: the operator wants
// it so, the site leaves, or it is in trouble.
func (b *Book) PausesHome() bool { return b.drain.Own || b.closing || b.full != nil }

// SetDrain changes what the site takes on.
func (b *Book) SetDrain(d Drain, fx *turn.Effects) {
	b.drain = d
	fx.Writes = append(fx.Writes, record.PutRecord(record.BucketMeta, keyDrain, d))
}

// Recover reads the site's wish of an earlier life.
func (b *Book) Recover(j record.Reader) error {
	v, err := j.Get(record.BucketMeta, keyDrain)
	if err != nil || len(v) == 0 {
		return err
	}
	if err := json.Unmarshal(v, &b.drain); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// KeepsOwn reports whether own users' jobs may wait at home: the site is not drained for
// them, and does not leave.
func (b *Book) KeepsOwn() bool { return !b.drain.Own && !b.closing }

// Draining tells what the site takes on: nothing for others (on), nothing for its own
// users either (own).
func (b *Book) Draining() (on, own bool) { return b.drain.On, b.drain.Own }
