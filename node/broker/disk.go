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

// relieveDisk has inputs of other sites' tasks go that no task here needs now: they can be fetched again.
func (b *Broker) relieveDisk(n int64) int64 {
	freed, err := b.cfg.Files.Evict(n)
	switch {
	case err != nil:
		b.cfg.Logger.Warn().Err(err).Msg("files of other sites' ended tasks could not be removed from the full disk")
	case freed > 0:
		b.cfg.Logger.Info().Int64("bytes", freed).
			Msg("the disk has less than min_free: files of other sites' ended tasks were removed")
	}
	return freed
}
