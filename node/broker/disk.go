package broker

import "github.com/cloudshare/cloudshare/node/core"

// watchDisk looks at the disk until the broker stops.
func (b *Broker) watchDisk() { b.disk.Run(b.ctx.Done(), b.diskChanged) }

// diskChanged tells the core, and people.
func (b *Broker) diskChanged(err error) {
	b.post(core.DiskEvent{Full: b.disk.Full()})
	switch full := b.disk.Full(); {
	case err != nil:
		b.cfg.Logger.Warn().Err(err).Msg("free space cannot be measured")
	case full != nil:
		b.cfg.Logger.Warn().Err(full).Msg("no new jobs are taken, nothing is offered or started")
	default:
		b.cfg.Logger.Info().Int64("free_bytes", b.disk.FreeBytes()).Msg("the disk has room for new jobs and tasks")
	}
}
