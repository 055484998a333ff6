package archive

// Used sums up what attempts have used, as their sites measured it. Times on cores are milli-cores times milliseconds.
type Used struct {
	// TimedCoreMs is what was charged for the attempts of which the processor time is known.
	TimedCoreMs      int64
	UserMs, SystemMs int64
	PeakBytes        int64 // of the attempt that used most, 0 = not known
	// InBytes are those of the files that attempts were given, OutBytes those of the files that they have left.
	InBytes, OutBytes int64

	// peaks are the attempts of which the greatest memory is known, and sum is that memory: it may be more than an
	// integer holds. bounded and asked are alike, of those among them that had a bound.
	peaks, sum, bounded, asked float64
}

// add adds an attempt that ran.
func (u *Used) add(t *Attempt) {
	m := &t.Measured
	if m.UserMs > 0 || m.SystemMs > 0 {
		plus(&u.TimedCoreMs, t.CoreMs())
		plus(&u.UserMs, m.UserMs)
		plus(&u.SystemMs, m.SystemMs)
	}
	if peak := m.PeakBytes; peak > 0 {
		u.PeakBytes = max(u.PeakBytes, peak)
		u.peaks++
		u.sum += float64(peak)
		if t.Need.MemMiB > 0 {
			u.bounded += float64(peak)
			u.asked += float64(t.Need.MemMiB) * (1 << 20)
		}
	}
	plus(&u.InBytes, m.InBytes)
	plus(&u.OutBytes, m.OutBytes)
}

// CPUShare returns the processor time by the cores times the time that were held for it; false: it is not known.
func (u *Used) CPUShare() (float64, bool) {
	if u.TimedCoreMs <= 0 {
		return 0, false
	}
	return 1000 * (float64(u.UserMs) + float64(u.SystemMs)) / float64(u.TimedCoreMs), true
}

// MeanPeak returns the mean of the attempts' greatest memory, in bytes, as far as it is known, else 0.
func (u *Used) MeanPeak() int64 {
	if u.peaks == 0 {
		return 0
	}
	return int64(u.sum / u.peaks)
}

// MemoryShare returns the attempts' greatest memory by what they had asked for, of those of which both are known;
// false: of none.
func (u *Used) MemoryShare() (float64, bool) {
	if u.asked == 0 {
		return 0, false
	}
	return u.bounded / u.asked, true
}
