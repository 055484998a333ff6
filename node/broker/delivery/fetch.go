package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// round is one batch of a site's deliveries on its way.
type round struct {
	*Loop
	ctx   context.Context //nolint:containedctx // a round is one call
	site  string
	addr  string
	entry uint64
	said  []command.Delivered
	done  []*delivery // of said
	bytes int64       // of those that were begun
	away  error       // why the site could not be reached, nil: it could
}

// fetched is a delivery of a round.
type fetched struct {
	*delivery
	Wanted
	at    store.Place
	blobs []files.Blob // that its manifest names, and that are not in it
	err   error        // why it is not here
}

func (f *fetched) manifest() files.Blob {
	return files.Blob{Hash: f.Output.Manifest, Size: f.Output.Size}
}

func (f *fetched) result() results.Result {
	return results.Result{Num: f.Job.Num, TaskResult: node.TaskResult{
		Task: f.Task, Attempt: f.Attempt, Manifest: f.manifest(), Bytes: f.Output.Bytes,
	}}
}

func (l *Loop) pinOf(d *delivery) string {
	return fmt.Sprintf("%s/%d/%d/%d/%d", l.cfg.Pins, d.Job.Num, d.Task, d.Attempt, d.Token)
}

// maxGroup is about how many blobs are asked for before what has come is kept.
const maxGroup = 4096

// fetch fetches a batch, and says what became of it.
func (l *Loop) fetch(ctx context.Context, site string, batch []*delivery) {
	r := &round{Loop: l, ctx: ctx, site: site}
	r.addr, r.entry = l.cfg.State.Where(site)
	var list []*fetched
	for _, d := range batch {
		if f := r.begin(d); f != nil {
			list = append(list, f)
		}
	}
	r.fetchManifests(list)
	for len(list) > 0 {
		n, blobs := 0, 0
		for n < len(list) && (n == 0 || blobs < maxGroup) {
			r.read(list[n])
			blobs += len(list[n].blobs)
			n++
		}
		r.fetchBlobs(list[:n])
		list = list[n:]
	}
	l.reached(site, r.away == nil)
	r.giveUp()
	r.tell()
	l.forget(batch)
}

// forget lets go again what was dropped while it was fetched: it may have been pinned since, and begun.
func (l *Loop) forget(batch []*delivery) {
	l.mu.Lock()
	for _, d := range batch {
		if d.dropped {
			l.cfg.Store.Unpin(l.pinOf(d))
			l.left = append(l.left, d.begun...)
		}
	}
	l.mu.Unlock()
	l.clear()
}

// begin returns a delivery to be fetched, nil: what becomes of it is known already.
func (r *round) begin(d *delivery) *fetched {
	w, err := r.cfg.WantedOf(d.AttemptRef)
	f := &fetched{delivery: d, Wanted: w, at: store.OwnOf(w.User)}
	switch {
	case errors.Is(err, ErrUnwanted):
		r.say(d, command.DeliveryLost, err.Error())
	case err != nil:
		r.retry(f, err)
	case d.Output.IsZero() && len(w.Outputs.Paths) > 0:
		r.say(d, command.DeliveryFailed, "its site has collected nothing, and its job requires outputs")
	case d.Output.IsZero():
		r.say(d, command.DeliveryOK, "")
	case d.Output.Bytes > w.Outputs.MaxBytes:
		r.say(d, command.DeliveryFailed, fmt.Sprintf("its outputs have %d bytes, and its job allows %d",
			d.Output.Bytes, w.Outputs.MaxBytes))
	case r.cfg.Results.Has(d.Job.Num, f.result().TaskResult): // an earlier life of the broker did
		r.say(d, command.DeliveryOK, "")
	default:
		if f.err = r.cfg.Full(r.bytes + d.Output.Bytes); f.err == nil {
			r.bytes += d.Output.Bytes
			return f
		}
		r.waitForRoom(f)
	}
	return nil
}

// keep keeps what has come whole, and tells the federation.
func (r *round) keep(list ...*fetched) {
	defer r.tell()
	var whole []results.Result
	for _, f := range list {
		if f.err == nil && f.ctx.Err() == nil {
			whole = append(whole, f.result())
		}
	}
	err := r.cfg.Results.KeepAll(whole)
	for _, f := range list {
		switch kept := r.cfg.Results.Has(f.Job.Num, f.result().TaskResult); {
		case f.ctx.Err() != nil:
		case f.err != nil:
			r.failed(f)
		case kept && (err == nil || isIncomplete(err)):
			r.say(f.delivery, command.DeliveryOK, "")
		default:
			r.retry(f, err)
		}
	}
}

// say notes what the federation is told of a delivery.
func (r *round) say(d *delivery, o command.Delivery, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	d.said = true
	r.full = r.full && o != command.DeliveryOK
	r.done = append(r.done, d)
	r.said = append(r.said, command.Delivered{AttemptRef: d.AttemptRef, Outcome: o, Detail: command.Clip(detail)})
	if o != command.DeliveryOK {
		r.cfg.Logger.Warn().Stringer("job", d.Job).Uint32("task", d.Task).Str("site", d.Site).Str("reason", detail).
			Msg("outputs of a task are not to be had")
	}
}

// maxTold is how many deliveries stand in one command.
const maxTold = 1000

// tell tells the federation what became of the round.
func (r *round) tell() {
	if len(r.said) == 0 {
		return
	}
	l, ctx, done, said := r.Loop, r.ctx, r.done, r.said
	if len(said) > maxTold {
		done, said = done[:maxTold], said[:maxTold]
	}
	r.done, r.said = r.done[len(done):], r.said[len(said):]
	defer r.tell() // the rest
	r.cfg.Say(said, func(answer command.Code) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, d := range done {
			if d.said = false; answer == command.OK {
				l.drop(d)
			} else {
				l.again(ctx, d, "the federation refuses to hear that its outputs are here: "+answer.String())
			}
		}
	})
}

// blobOf names a blob to the site that has it.
func blobOf(d *delivery, what transfer.What, b files.Blob) transfer.Blob {
	return transfer.Blob{Attempt: d.AttemptRef, What: what, Hash: b.Hash, Size: b.Size}
}
