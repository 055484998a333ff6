package local

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// isZero reports whether nothing is said of outputs, as in earlier lines.
func isZero(o *executor.Outputs) bool {
	return !o.Wanted() && o.MaxBytes == 0 && o.MaxFiles == 0 && o.When == 0
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// outputs appends what an attempt is to leave.
func (w *writer) outputs(o *executor.Outputs) {
	for _, list := range [][]string{o.Paths, o.Optional} {
		w.int(int64(len(list)))
		for _, text := range list {
			w.string(text)
		}
	}
	w.int(o.MaxBytes).int(int64(o.MaxFiles)).int(int64(o.When))
}

func (r *reader) outputs() (o executor.Outputs) {
	for _, list := range []*[]string{&o.Paths, &o.Optional} {
		for range r.count() {
			*list = append(*list, r.string())
		}
	}
	o.MaxBytes, o.MaxFiles, o.When = r.int(), int(r.int()), executor.When(r.int())
	return o
}

// usage appends what an attempt used, if that is known.
func (w *writer) usage(u *executor.Usage) {
	if *u != (executor.Usage{}) { // earlier lines end here
		w.int(u.PeakMemory).int(int64(u.User)).int(int64(u.System)).int(int64(u.MemoryFrom)).int(int64(u.TimeFrom))
	}
}

func (r *reader) usage() (u executor.Usage) {
	if len(r.b) > 0 {
		u.PeakMemory, u.User, u.System = r.int(), time.Duration(r.int()), time.Duration(r.int())
		u.MemoryFrom, u.TimeFrom = executor.UsageSource(r.int()), executor.UsageSource(r.int())
	}
	return u
}
