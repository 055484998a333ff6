package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// measureForeign runs 1000 × /bin/true of one site at the others, where they are in sandboxes, beside as many at once
// that fork and exec into the same namespaces, and beside a bare fork and exec.
func measureForeign(ctx context.Context, t *table, fed *testbed.Federation) error {
	const together = (siteCount - 1) * coresPerSite
	forks, err := forkLoop(ctx, shortTasks, together, nil)
	if err != nil {
		return err
	}
	limit, err := forkLoop(ctx, shortTasks, together, ownNamespaces())
	if err != nil {
		return fmt.Errorf("into namespaces: %w", err)
	}
	began := time.Now()
	if err = runAway(ctx, fed.Sites[0]); err != nil {
		return err
	}
	rate := shortTasks / time.Since(began).Seconds()
	t.add(figure{
		name: fmt.Sprintf("%d × /bin/true at other sites, in sandboxes", shortTasks), unit: "tasks/s", measured: rate, limit: limit,
		aim:  aim{minRatio: 0.5},
		note: fmt.Sprintf("limit: fork/exec into the same namespaces, %d at once; of bare fork/exec (%.0f): %.2f", together, forks, rate/forks),
	})
	return nil
}

// ownNamespaces has a process begin in namespaces such as those of a sandbox.
func ownNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// runAway runs tasks of a site at all others.
func runAway(ctx context.Context, home *testbed.Site) error {
	away := testbed.Spec{Command: []string{"/bin/true"}, Count: shortTasks, Sites: &testbed.Where{Not: []string{home.Name}}}
	return untilEnded(ctx, home, func() ([]string, error) {
		a, err := home.Submit(ctx, away)
		return []string{a.ID}, err
	})
}
