package fsm

import "github.com/cloudshare/cloudshare/fsm/command"

// What a record's marks say: what follows of its facts.
const (
	markOutput = 1 << iota
	markMeasured
)

func (w *snapWriter) facts(f *facts) {
	x := f.get()
	w.uint(marks(!x.output.IsZero(), !x.measured.IsZero()))
	if o := &x.output; !o.IsZero() {
		w.scratch = append(w.scratch, o.Manifest[:]...)
		w.int(o.Size, o.Bytes)
	}
	if m := &x.measured; !m.IsZero() {
		w.int(m.PeakBytes, m.UserMs, m.SystemMs, m.InBytes, m.OutBytes)
		w.uint(uint64(m.Source))
	}
}

// facts reads what snapWriter.facts wrote.
func (r *snapReader) facts(j *job) *facts {
	is := r.upTo(markOutput|markMeasured, "facts")
	if is == 0 {
		return nil
	}
	f := &facts{}
	if is&markOutput != 0 {
		o := &f.output
		o.Manifest = r.hash32()
		o.Size, o.Bytes = r.within(1, command.MaxManifest, "manifest"), r.within(0, command.MaxOutputBytes, "outputs")
		r.check(j.delivers && o.Manifest != [32]byte{}, "an output of a job without, or without a manifest")
	}
	if is&markMeasured != 0 {
		m := &f.measured
		m.PeakBytes = r.within(0, command.MaxPeakBytes, "memory")
		m.UserMs = r.within(0, command.MaxProcessorMs, "processor time")
		m.SystemMs = r.within(0, command.MaxProcessorMs, "processor time")
		m.InBytes, m.OutBytes = r.within(0, command.MaxTransfer, "bytes"), r.within(0, command.MaxTransfer, "bytes")
		m.Source = command.MeasureSource(r.upTo(uint64(command.LastMeasureSource), "source"))
		r.check(!m.IsZero(), "a measure of nothing")
	}
	return f
}

func (d *delivery) encode(w *snapWriter) {
	d.record.encode(w)
	w.uint(uint64(d.last), uint64(d.doubts), d.since)
	w.int(d.sinceMs)
}

// delivering reads the tasks whose outputs are on their way, before those that are live.
func (r *snapReader) delivering(s *State, seq uint64, j *job, t *taskSet) {
	last := int64(-1)
	for range r.upTo(uint64(j.count), "deliveries") {
		d := delivery{record: r.record(s, j)}
		d.last, d.doubts, d.since, d.sinceMs = r.u32("attempt"), r.u32("doubts"), r.upTo(s.index, "entry"), r.ms(0, s.time)
		if r.err != nil {
			return
		}
		_, ended := t.findRun(d.task)
		r.check(d.task < j.next && !ended && t.findBack(d.task) == nil && !t.isGated(d.task) && int64(d.task) > last,
			"deliveries out of order")
		r.check(j.delivers && d.site >= 0 && int(d.site) < len(s.sites) && d.site != j.owner, "a delivery of nothing")
		r.check(d.attempt > 0 && d.attempt <= d.last && d.token <= s.index && d.token < d.since && j.entry < d.since,
			"a delivery's numbers contradict each other")
		r.check(d.assignedMs >= 0 && (d.startedMs < 0 || d.startedMs <= d.endedMs) && d.endedMs >= 0 &&
			d.endedMs <= d.sinceMs, "a delivery's times contradict each other")
		if r.err != nil {
			return
		}
		last = int64(d.task)
		s.addDelivery(seq, j, d)
	}
}
