package transport

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// timed is a connection that notes how long it may take for each write.
type timed struct {
	*httptest.ResponseRecorder
	waits []time.Duration
}

func (c *timed) SetWriteDeadline(at time.Time) error {
	c.waits = append(c.waits, time.Until(at))
	return nil
}

// Found by review: a hundred clients that asked for lists of large jobs and took
// nothing held a gigabyte for half a minute.
func TestLargeAnswersHurryWhenManyWait(t *testing.T) {
	for name, c := range map[string]struct {
		bytes   int
		untaken int64
		want    time.Duration
	}{
		"large, few wait":  {maxWrite + 1, 0, 30 * time.Second},
		"large, many wait": {maxWrite + 1, maxUntaken, hurried},
		"small, many wait": {maxWrite, maxUntaken, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			out := NewWriters(30 * time.Second)
			out.untaken.Store(c.untaken)
			conn := &timed{ResponseRecorder: httptest.NewRecorder()}
			n, err := out.Guard(conn).Write(make([]byte, c.bytes))
			if n != c.bytes || err != nil || out.untaken.Load() != c.untaken || conn.waits[0] != c.want {
				t.Errorf("%s: wrote %d, %v, in at most %v; %d bytes wait", name, n, err, conn.waits, out.untaken.Load())
			}
		})
	}
}
