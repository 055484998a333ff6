package broker

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// An honest federation's time is never told of: it moves as the clock of whoever leads does, or stands, and this broker
// may know of it late. A leader that has it run faster is told of once, and again after it was not so.
func TestLogTimeRunsAhead(t *testing.T) {
	const second = int64(time.Second)
	var l logTime
	clock, logMs := 5000*second, int64(77)
	step := func(clockSec, logSec int64) (time.Duration, bool) {
		sent := clock
		clock += clockSec * second
		logMs += logSec * 1000
		return l.compare(sent, clock, logMs, false)
	}
	for range 100 {
		if ahead, tell := step(1, 1); ahead > time.Second || tell {
			t.Fatalf("as fast as the clock: %v ahead, %v", ahead, tell)
		}
	}
	step(3600, 0) // no leader for an hour
	if _, tell := step(1, 1); tell {
		t.Error("an hour in which nothing was ordered")
	}
	told := 0
	for range 100 {
		if _, tell := step(1, 2); tell {
			told++
		}
	}
	if told != 1 || l.now() < 90*time.Second {
		t.Errorf("twice as fast for 100 s: told %d times, %v ahead", told, l.now())
	}
	step(100, 0)
	for range 100 {
		if _, tell := step(1, 2); tell {
			told++
		}
	}
	if told != 2 {
		t.Errorf("after it stood for a while, twice as fast again: told %d times", told)
	}
}

// TestHonestLogTime: whoever leads, whatever is late, and with clocks that differ by a ten-thousandth. Nobody leads for
// a while, or entries are not ordered for a while in one term, after which its time has gone on; long work holds it up
// for as long as it takes.
func TestHonestLogTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l logTime
		clock, logNs, owed := int64(time.Hour), int64(0), int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "renewals") {
			asked := rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "the renewal takes")
			pause := rapid.Int64Range(0, int64(20*time.Minute)).Draw(t, "until the next one")
			stands := rapid.Int64Range(0, pause+asked).Draw(t, "nobody leads for")
			moved := pause + asked - stands + owed
			owed = 0
			lags := rapid.Bool().Draw(t, "long work")
			switch {
			case lags:
				owed = moved
			case rapid.Bool().Draw(t, "a disk hangs"):
				owed = min(moved, int64(30*time.Second))
			}
			moved -= owed
			clock += pause
			logNs += moved + moved/10_000
			// The renewal has all that was ordered before it was sent, and perhaps what was while it was answered.
			if ahead, tell := l.compare(clock, clock+asked, logNs/int64(time.Millisecond), lags); tell {
				t.Fatalf("%v ahead", ahead)
			}
			clock += asked
		}
	})
}
