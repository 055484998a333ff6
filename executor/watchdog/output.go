package watchdog

import (
	"fmt"
	"os"
	"time"
)

// Output sizes are looked at this often: a little after the start, and less
// often while little is written.
const (
	minLook = int64(50 * time.Millisecond)
	maxLook = int64(time.Second)
)

// Output bounds what an attempt writes straight into its two files: between two
// looks a file can be larger than its limit; readers never see more.
type Output struct {
	Files [2]*os.File // stdout, stderr
	cut   [2]bool     // went over the limit
}

// begin is called for each attempt that writes into the files.
func (o *Output) begin() { o.cut = [2]bool{} }

// look cuts what is over limit bytes and returns when to look again, in
// nanoseconds; pace is what it returned before.
func (o *Output) look(limit, pace int64) int64 {
	near := false
	for i := range o.Files {
		near = o.cutOver(i, limit) > limit/2 || near
	}
	if near {
		return minLook
	}
	return min(pace*2, maxLook)
}

// cutOver cuts what a stream has over limit bytes, and returns what it had.
func (o *Output) cutOver(stream int, limit int64) int64 {
	st, err := o.Files[stream].Stat()
	if err != nil {
		return 0
	}
	if st.Size() > limit {
		o.cut[stream] = true
		_ = o.Files[stream].Truncate(limit)
	}
	return st.Size()
}

// Finish takes the last look at a stream, and at no other, which may have its mark
// already; it marks it if it was cut.
// REQUIRES: no process of the attempt is left.
func (o *Output) Finish(stream int, limit int64) {
	o.cutOver(stream, limit)
	if o.cut[stream] {
		_, _ = o.Files[stream].WriteString(Marker(limit))
	}
}

// Marker ends output that was cut.
func Marker(limit int64) string {
	return fmt.Sprintf("\n[cloudshare: output cut at %d bytes]\n", limit)
}
