package results

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/record"
)

// header is what the journal holds of a job with results, under its number.
type header struct {
	User string `json:"user,omitempty"`
	// EndedMs is when this broker saw that the job has ended, in unix milliseconds; 0: it has not.
	EndedMs int64 `json:"ended_ms,omitempty"`
	// Shape is known once it has ended.
	Shape
}

// Shape says which indices the tasks of a job have: results outlive what else is known of their job. The zero value is
// that nobody knows.
type Shape struct {
	Count   uint32 `json:"count,omitempty"`
	Indices string `json:"indices,omitempty"` // as a spec has them, "" = those from 0 on
}

var errRecord = errors.New("a record of results is damaged")

// encode returns what the journal holds of a result, under job and task.
func encode(r *node.TaskResult) []byte {
	b := make([]byte, 0, resultBytes)
	b = binary.BigEndian.AppendUint32(b, r.Attempt)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Manifest.Size))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Bytes))
	return append(b, r.Manifest.Hash[:]...)
}

const resultBytes = 4 + 8 + 8 + len(files.Hash{})

func decode(task uint32, b []byte) (r node.TaskResult, err error) {
	if len(b) != resultBytes {
		return r, errRecord
	}
	r.Task, r.Attempt = task, binary.BigEndian.Uint32(b)
	r.Manifest.Size, r.Bytes = int64(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint64(b[12:]))
	copy(r.Manifest.Hash[:], b[20:])
	return r, nil
}

// recover reads what earlier lives of the broker have kept.
func (b *Book) recover() error {
	err := b.journal.Each(record.BucketResults, func(key, value []byte) error {
		switch len(key) {
		case 8:
			var h header
			if err := json.Unmarshal(value, &h); err != nil {
				return errRecord
			}
			b.jobs[record.DecodeNumber(key)] = &job{header: h, recorded: true, blobs: map[files.Hash]int{}}
			return nil
		case 12:
			num, task := record.DecodeNumber(key[:8]), binary.BigEndian.Uint32(key[8:])
			r, err := decode(task, value)
			j := b.jobs[num]
			if err != nil || j == nil {
				return errRecord
			}
			j.tasks = append(j.tasks, r)
			return nil
		}
		return errRecord
	})
	if err != nil {
		return fmt.Errorf("read the results of jobs from the journal: %w", err)
	}
	return nil
}
