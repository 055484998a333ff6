package broker

import "time"

// saveDatesEvery is the time between two looks for new points.
const saveDatesEvery = 5 * time.Second

// keepDates writes new points as they come. A crash loses none that matter: the
// log has the entries of the last seconds yet.
func (b *Broker) keepDates() {
	look := time.NewTicker(saveDatesEvery)
	defer look.Stop()
	var saved uint64
	save := func() {
		if err := b.cfg.Replica.SaveDates(&saved); err != nil {
			b.cfg.Logger.Warn().Err(err).Msg("after a restart dates of the past may be off")
		}
	}
	defer save()
	current := b.registrar.current
	for {
		select {
		case <-current:
			current = nil
			b.cfg.Replica.CutDates()
		case <-look.C:
			save()
		case <-b.ctx.Done():
			return
		}
	}
}
