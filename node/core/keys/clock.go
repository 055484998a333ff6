package keys

import (
	"time"

	"github.com/cloudshare/cloudshare/node/record"
)

// keyKeyClock is where the journal has the step of Book.clock.
var keyKeyClock = []byte("key-clock")

// Clock returns how long brokers have run on this data, in all: keys age by it.
func (k *Book) Clock() time.Duration { return k.clock }

// Advance moves the clock to when this process has run for up.
func (k *Book) Advance(up time.Duration) { k.clock = max(k.clock, k.began+up-k.upAtBegin) }

// noteClock has the journal hold each step of the clock while there are keys: a
// crash costs less than a step, by which keys live longer.
func (k *Book) noteClock(writes *[]record.Write) {
	if step := StepOf(k.clock); step != k.noted && k.held > 0 {
		k.noted = step
		*writes = append(*writes, record.Put(record.BucketMeta, keyKeyClock, record.Number(uint64(step))))
	}
}

// recoverClock continues from the last step that the journal has: in the clock's own
// record, or in the record of a key.
func (k *Book) recoverClock(j record.Reader, up time.Duration) error {
	v, err := j.Get(record.BucketMeta, keyKeyClock)
	if err != nil {
		return err
	}
	step := uint32(min(record.DecodeNumber(v), maxStep))
	err = j.Each(record.BucketKeys, func(key, v []byte) error {
		_, r, bad := decodeRun(key, v)
		step = max(step, r.step)
		return bad
	})
	if step > 0 {
		k.began = time.Duration(step-1) * Step
	}
	k.clock, k.noted, k.upAtBegin = k.began, step, up
	return err
}
