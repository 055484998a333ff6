package outputs

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/cloudshare/cloudshare/executor"
)

// keyOf is what the index knows an attempt by, whatever its token: people ask by task
// and attempt. Two of a hundred million attempts have the same with a chance of
// 1 : 4000; then the earlier one's output cannot be read, and nothing else happens.
func keyOf(job string, task, attempt uint32) uint64 {
	var room [maxJob + 9]byte
	b := append(append(room[:0], job...), 0) // no job's name holds a zero
	b = binary.LittleEndian.AppendUint32(b, task)
	b = binary.LittleEndian.AppendUint32(b, attempt)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

func keyOfID(id executor.ID) uint64 { return keyOf(id.Job, id.Task, id.Attempt) }
