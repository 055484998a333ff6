package outputs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Names in the store's folder.
const (
	apartFolder = "apart" // of streams that are in files of their own
	segmentExt  = ".seg"
	indexExt    = ".idx"
	removedExt  = ".gone"
	newExt      = ".new" // a file that is being written
)

var streamNames = [2]string{"stdout", "stderr"}

func fileOf(number uint32, ext string) string { return fmt.Sprintf("%010d%s", number, ext) }

// apartName is the file of a stream that has one.
func apartName(id executor.ID, stream int) string {
	return apartFolder + "/" + id.String() + "." + streamNames[stream]
}

// parseFile reads the name of a segment or an index.
func parseFile(name string) (number uint32, ext string, ok bool) {
	digits, rest, _ := strings.Cut(name, ".")
	n, err := strconv.ParseUint(digits, 10, 32)
	number, ext = uint32(n), "."+rest
	return number, ext, err == nil && fileOf(number, ext) == name
}

// removed is a segment that was removed; its index stays a while under a name that
// says why and when, so that an answer can.
type removed struct {
	number uint32
	byAge  bool
	at     time.Time // in seconds
}

func (r removed) name() string {
	why := "bytes"
	if r.byAge {
		why = "age"
	}
	return fmt.Sprintf("%010d-%s-%d%s", r.number, why, r.at.Unix(), removedExt)
}

// parseRemoved reads what removed.name wrote.
func parseRemoved(name string) (r removed, ok bool) {
	part := strings.Split(strings.TrimSuffix(name, removedExt), "-")
	if len(part) != 3 {
		return r, false
	}
	n, err1 := strconv.ParseUint(part[0], 10, 32)
	at, err2 := strconv.ParseInt(part[2], 10, 64)
	r = removed{uint32(n), part[1] == "age", time.Unix(at, 0)}
	return r, err1 == nil && err2 == nil && r.name() == name
}
