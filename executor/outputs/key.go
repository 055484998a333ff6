package outputs

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/cloudshare/cloudshare/executor"
)

// keyOf returns what the index knows an attempt by, whatever its token: people ask by task
// and attempt. Two of a hundred million attempts have the same with a chance of
// 1 : 4000; then the earlier one's output cannot be read, and nothing else happens.
//
// Attempts count from 1. The key of attempt 0 leads to the newest one, if that is not
// the first: a task that succeeds at once, as most do, takes one place in memory.
func keyOf(job string, task, attempt uint32) uint64 {
	var room [maxJob + 9]byte
	b := append(append(room[:0], job...), 0) // no job's name holds a zero
	b = binary.LittleEndian.AppendUint32(b, task)
	b = binary.LittleEndian.AppendUint32(b, attempt)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

func keyOfID(id executor.ID) uint64 { return keyOf(id.Job, id.Task, id.Attempt) }

// newestKey leads to the newest attempt of a task, unless that is the first.
func newestKey(job string, task uint32) uint64 { return keyOf(job, task, 0) }

// appendEntries appends the entries of an output at a place of its segment.
func appendEntries(entries []entry, id executor.ID, off uint32, newest bool) []entry {
	entries = append(entries, entry{keyOfID(id), off})
	if newest && id.Attempt > 1 {
		entries = append(entries, entry{newestKey(id.Job, id.Task), off})
	}
	return entries
}
