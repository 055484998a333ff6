package homelogs

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

// BenchmarkHundredThousand: the outputs of an array, 20 bytes each.
func BenchmarkHundredThousand(b *testing.B) {
	const many = 100_000
	small := func(_ context.Context, _ string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
		return asklogs.Output{Attempt: r.Attempt, Token: 7, Streams: [2]io.ReadCloser{
			io.NopCloser(strings.NewReader(fmt.Sprintf("result of task %5d\n", r.Task)[:20])), io.NopCloser(strings.NewReader("")),
		}}, asklogs.Granted
	}
	for b.Loop() {
		f := &federation{t: b, dir: b.TempDir(), sites: map[string]func(net.Conn){"site-2": honest(small)}}
		f.ran("site-2", many)
		begin := time.Now()
		f.start()
		for tick := time.NewTicker(10 * time.Millisecond); f.Stats().Brought < many; {
			<-tick.C
		}
		b.ReportMetric(time.Since(begin).Seconds(), "s/all")
		b.ReportMetric(float64(f.Stats().Questions), "questions")
		size := int64(0)
		files, _ := filepath.Glob(filepath.Join(f.dir, "outputs", "*"))
		for _, path := range files {
			if st, err := os.Stat(path); err == nil {
				size += st.Size()
			}
		}
		b.ReportMetric(float64(size)/many, "B/output")
		b.ReportMetric(float64(len(files)), "files")
		f.stop()
	}
}
