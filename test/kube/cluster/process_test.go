//go:build kube

package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestOneStartsAtATime: kubelets take one path of the machine when they start, and one that
// loses a race for it ends. So each is ready before the next of any cluster is launched.
func TestOneStartsAtATime(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	var all sync.WaitGroup
	for range 5 {
		p := &Process{
			Name: "starts", program: "/bin/sh", args: []string{"-c", "echo begins >>" + said + "; exec sleep 1000"}, dir: dir, log: filepath.Join(dir, "log"), alone: dir,
		}
		p.ready = func(context.Context) error {
			b, err := os.ReadFile(said)
			if err != nil || !strings.HasSuffix(string(b), "begins\n") {
				return os.ErrNotExist
			}
			f, err := os.OpenFile(said, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("ready\n")
				f.Close()
			}
			return err
		}
		t.Cleanup(p.Kill)
		all.Go(func() {
			if err := p.Start(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(said)
	if want := strings.Repeat("begins\nready\n", 5); err != nil || string(b) != want {
		t.Errorf("they said %q, %v", b, err)
	}
}
