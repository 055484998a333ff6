package e2e

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestDatesStayOverAnOutage: all brokers die and come back; log time stood still
// meanwhile, and what people are shown of before stays as it was, the same at
// every broker.
func TestDatesStayOverAnOutage(t *testing.T) {
	t.Parallel()
	fed := start(t, 2, 1)
	bag := submit(t, fed.Sites[0], testbed.Spec{Command: []string{"/bin/true"}, Count: 3})
	awaitEnd(t, fed.Sites[0], bag.ID)
	want := datesOf(t, fed.Sites[0], bag.ID)
	for _, s := range fed.Sites {
		must(t, s.Kill())
	}
	must(t, fed.Restart(within(t), fed.Sites...))
	awaitEnd(t, fed.Sites[1], submit(t, fed.Sites[1], testbed.Spec{Command: []string{"/bin/true"}, Count: 3}).ID)
	await(t, "the same state", func() error { return testbed.AwaitEqualState(within(t), fed.Sites...) })
	for _, s := range fed.Sites {
		if got := datesOf(t, s, bag.ID); got != want {
			t.Errorf("%s has%s\nafter the outage, before it was%s", s.Name, got, want)
		}
	}
}

func datesOf(t *testing.T, s *testbed.Site, job string) (text string) {
	t.Helper()
	for _, x := range tasksOf(t, s, job) {
		if x.StartedAt == nil || x.EndedAt == nil {
			t.Fatalf("task %d has no dates: %+v", x.Index, x)
		}
		text += fmt.Sprintf("\n%d: %s to %s", x.Index, x.StartedAt, x.EndedAt)
	}
	return text
}
