package journal

import (
	"encoding/binary"
	"errors"
)

// recordVersion is the first byte of a record of the write-ahead file.
const recordVersion = 1

// errRecord: a record of the write-ahead file that this version did not write.
var errRecord = errors.New("it does not read")

// appendChanges encodes a record: a version and the changes of one sync.
//
//	u8 version · n × (bucket · length · key · length of value + 1, 0 = delete · value)
func appendChanges(dst []byte, changes []change) []byte {
	dst = append(dst, recordVersion)
	for _, c := range changes {
		dst = binary.AppendUvarint(dst, uint64(c.bucket))
		dst = binary.AppendUvarint(dst, uint64(len(c.key)))
		dst = append(dst, c.key...)
		if c.value == nil {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(c.value))+1)
		dst = append(dst, c.value...)
	}
	return dst
}

// replay makes the changes of a record in a map; the values point into b.
func replay(b []byte, buckets int, into map[place][]byte) error {
	if len(b) == 0 || b[0] != recordVersion {
		return errRecord
	}
	for b = b[1:]; len(b) > 0; {
		var head [2]uint64
		for i := range head {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return errRecord
			}
			head[i], b = v, b[n:]
		}
		if head[0] >= uint64(buckets) || head[1] > uint64(len(b)) {
			return errRecord
		}
		at := place{Bucket(head[0]), string(b[:head[1]])}
		b = b[head[1]:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n)+1 {
			return errRecord
		}
		b = b[n:]
		if size == 0 {
			into[at] = nil
			continue
		}
		into[at], b = b[:size-1:size-1], b[size-1:]
	}
	return nil
}
