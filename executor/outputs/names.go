package outputs

import (
	"fmt"
	"strconv"
	"strings"

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

// apartName returns the file of a stream that has one.
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
