package attempts

import (
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// MeasuredOf returns what an attempt has used, within the bounds of what is reported. Memory and time may have come
// from different places: then the less exact one is named.
func MeasuredOf(u executor.Usage) command.Measured {
	m := command.Measured{
		PeakBytes: min(max(u.PeakMemory, 0), command.MaxPeakBytes), UserMs: spent(u.User), SystemMs: spent(u.System),
		Source: sources[u.TimeFrom],
	}
	switch {
	case u.MemoryFrom == executor.UsageUnknown:
		m.PeakBytes = 0
	case u.TimeFrom == executor.UsageUnknown:
		m.UserMs, m.SystemMs, m.Source = 0, 0, sources[u.MemoryFrom]
	case u.MemoryFrom == executor.UsageRusage:
		m.Source = command.MeasuredRusage
	}
	return m
}

var sources = map[executor.UsageSource]command.MeasureSource{
	executor.UsageRusage: command.MeasuredRusage, executor.UsageCgroup: command.MeasuredCgroup,
}

func spent(d time.Duration) int64 { return min(max(d.Milliseconds(), 0), command.MaxProcessorMs) }
