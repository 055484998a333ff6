package whose

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unique"

	"github.com/cloudshare/cloudshare/node/record"
)

// runFormat is the first byte of a run's record.
const runFormat = 1

var errBadRun = errors.New("a record of whose jobs are is malformed or of another version: run the version that wrote it")

// encode returns the run's record: format, number of jobs, user.
func (r *run) encode() []byte {
	return append(binary.BigEndian.AppendUint32([]byte{runFormat}, r.jobs), r.user.Value()...)
}

// Recover reads what earlier runs of the broker have noted.
func (b *Book) Recover(j record.Reader) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := j.Each(record.BucketUsers, func(k, v []byte) error {
		r, err := decodeRun(k, v)
		if err == nil {
			b.runs = append(b.runs, r)
		}
		return err
	})
	b.changed = len(b.runs)
	return err
}

func decodeRun(k, v []byte) (run, error) {
	const head = 1 + 4
	if len(k) != 8 || len(v) <= head || v[0] != runFormat {
		return run{}, fmt.Errorf("%w: %x", errBadRun, k)
	}
	r := run{record.DecodeNumber(k), binary.BigEndian.Uint32(v[1:]), unique.Make(string(v[head:]))}
	if r.jobs == 0 {
		return run{}, fmt.Errorf("%w: %x", errBadRun, k)
	}
	return r, nil
}
