package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// Found by review: a torn head of an archive's segment had everything before it counted
// twice, and any damage to a head deleted its segment without a word. Between two
// starts of a broker, first a segment is left behind whose head was cut short, as by a
// power failure when it began; then the head of every segment is damaged. Each attempt
// is told once, of before and behind, and the log names what was set aside.
func TestDamagedArchiveHeadsCountOnce(t *testing.T) {
	t.Parallel()
	fed := start(t, 2, 1)
	first := fed.Sites[0]
	run := func(tasks int) {
		t.Helper()
		awaitEnd(t, first, submit(t, first, testbed.Spec{Command: []string{"true"}, Count: tasks}).ID)
	}
	run(1) // at home, of which no log tells
	run(4)
	archivedOnce(t, first, 5)

	must(t, first.Kill())
	segments := archiveSegments(t, first)
	head, err := os.ReadFile(segments[0])
	must(t, err)
	torn := filepath.Join(filepath.Dir(segments[0]), fmt.Sprintf("%010d.seg", len(segments)+1))
	must(t, os.WriteFile(torn, head[:20], 0o600))
	must(t, fed.Restart(within(t), first))
	saidDamaged(t, first, 1)
	run(4)
	archivedOnce(t, first, 9)

	must(t, first.Kill())
	segments = archiveSegments(t, first)
	for _, path := range segments {
		damageHead(t, path)
	}
	must(t, fed.Restart(within(t), first))
	saidDamaged(t, first, 1+len(segments))
	run(4)
	archivedOnce(t, first, 13)
}

// archivedOnce waits until so many tasks are archived, and wants each of them once.
func archivedOnce(t *testing.T, s *testbed.Site, tasks int) {
	t.Helper()
	seen := map[string]bool{}
	for _, l := range awaitArchive(t, s, tasks) {
		name := fmt.Sprintf("%s/%d.%d", l.Job, l.Task, l.Attempt)
		if seen[name] {
			t.Errorf("%s is archived twice", name)
		}
		seen[name] = true
	}
}

// archiveSegments are the files of a site's archive, oldest first.
func archiveSegments(t *testing.T, s *testbed.Site) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.Dir, "data", "archive", "*.seg"))
	must(t, err)
	if len(paths) == 0 {
		t.Fatal("there is no segment")
	}
	return paths
}

// damageHead changes a byte in the middle of a segment's first frame, its head.
func damageHead(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	b[8+binary.LittleEndian.Uint32(b)/2] ^= 0x5a
	must(t, os.WriteFile(path, b, 0o600))
}

// saidDamaged waits until a broker has logged that it set so many segments aside, and
// looks whether they are there.
func saidDamaged(t *testing.T, s *testbed.Site, n int) {
	t.Helper()
	await(t, "a word on each damaged segment", func() error {
		text, err := os.ReadFile(filepath.Join(s.Dir, "broker.log"))
		if said := strings.Count(string(text), "archive: a segment was damaged"); err == nil && said != n {
			err = fmt.Errorf("%d lines, not %d", said, n)
		}
		return err
	})
	if aside, err := filepath.Glob(filepath.Join(s.Dir, "data", "archive", "damaged", "*.seg")); err != nil || len(aside) != n {
		t.Errorf("set aside: %v, not %d (%v)", aside, n, err)
	}
}
