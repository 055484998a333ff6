package local

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

// BenchmarkFiles: /bin/true with files of 4 KiB that come back, beside /bin/true without any,
// outside of sandboxes and in them.
func BenchmarkFiles(b *testing.B) {
	blob := filepath.Join(b.TempDir(), "blob")
	if err := os.WriteFile(blob, make([]byte, 4<<10), 0o400); err != nil {
		b.Fatal(err)
	}
	for _, where := range []struct {
		name    string
		contain Whom
	}{{"bare", ContainNobody}, {"sandbox", ContainAll}} {
		for _, n := range []int{0, 1, 100} {
			t := executor.Task{Owner: "site-2"}
			for i := range n {
				t.Files = append(t.Files, executor.File{Path: fmt.Sprintf("in/%d", i), Source: blob})
				t.Outputs.Paths = []string{"in/"}
			}
			b.Run(fmt.Sprintf("%s/files=%d", where.name, n), func(b *testing.B) {
				r := newRouter(b, 2, where.contain)
				for i := range int64(8) {
					r.runTask(b, 1_000_000+i+int64(b.N)*1000, executor.Task{Owner: "site-2"}) // warm up
				}
				inParallel(b, 2, func(i int64) { r.runTask(b, i+int64(b.N)*1000, t) })
			})
		}
	}
}
