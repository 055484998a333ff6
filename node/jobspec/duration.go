package jobspec

import (
	"errors"
	"math"
	"strings"
	"time"
)

// ErrDuration reports a text that says no duration.
var ErrDuration = errors.New("must be how long, such as 90d, 2w, 12h, 10m or 1d12h: weeks, days, hours, minutes and seconds")

// longUnits are those that Go's durations lack, the longest first. A day has 24 hours.
var longUnits = []struct {
	letter string
	length time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}}

// ParseDuration is time.ParseDuration with weeks and days before the hours, such as 90d, 2w or 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	var sum time.Duration
	rest := text
	for _, unit := range longUnits {
		n, after, found := strings.Cut(rest, unit.letter)
		if !found {
			continue
		}
		part, err := times(n, unit.length)
		if err != nil || sum > math.MaxInt64-part {
			return 0, ErrDuration
		}
		sum, rest = sum+part, after
	}
	long := rest != text
	if long && rest == "" {
		return sum, nil
	}
	short, err := time.ParseDuration(rest)
	if err != nil || long && (strings.ContainsAny(rest, "+-") || sum > math.MaxInt64-short) {
		return 0, ErrDuration
	}
	return sum + short, nil
}

// times returns a number of units.
func times(n string, unit time.Duration) (time.Duration, error) {
	if strings.Trim(n, "0123456789.") != "" {
		return 0, ErrDuration
	}
	d, err := time.ParseDuration(n + "h")
	hours := int64(unit / time.Hour)
	if err != nil || int64(d) > math.MaxInt64/hours {
		return 0, ErrDuration
	}
	return time.Duration(int64(d) * hours), nil
}
