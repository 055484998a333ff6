package attempts

import (
	"fmt"
	"strings"
)

// Bandwidth bounds what a task reads from and writes to a disk in a second, 0 = no bound. It holds of each disk that
// the task reaches, by itself.
type Bandwidth struct {
	ReadBytes, WriteBytes int64
	Reads, Writes         int64 // operations
}

// Check says of a bound that no disk can have.
func (b Bandwidth) Check() error {
	if min(b.ReadBytes, b.WriteBytes, b.Reads, b.Writes) < 0 {
		return fmt.Errorf("io is %+v: give 1 or more, or 0 for no bound", b)
	}
	return nil
}

// String returns the bounds in the words of io.max, "" = there are none.
func (b Bandwidth) String() string {
	var words []string
	for _, w := range []struct {
		name string
		most int64
	}{{"rbps", b.ReadBytes}, {"wbps", b.WriteBytes}, {"riops", b.Reads}, {"wiops", b.Writes}} {
		if w.most > 0 {
			words = append(words, fmt.Sprintf("%s=%d", w.name, w.most))
		}
	}
	return strings.Join(words, " ")
}
