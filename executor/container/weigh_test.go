//go:build container

package container_test

import (
	"io"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestWrittenToTheImageIsWeighed: what a task has changed of its image's files, at both engines.
func TestWrittenToTheImageIsWeighed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := open(t, config(t, engines.Start(t, kind)))
			const size = 6_000_000
			id := r.Begin(r.shell("head -c 6000000 /dev/zero >/bin/large && echo there && exec sleep 300"))
			r.AwaitRunning(id)
			rc, err := r.Logs(t.Context(), id, "stdout", true)
			r.Must(err)
			_, err = io.ReadFull(rc, make([]byte, len("there")))
			r.Must(err)
			r.Must(rc.Close())
			if got := r.Handler.(executor.Weigher).Weigh(t.Context(), id); got < size || got > 2*size {
				t.Errorf("%d bytes are told of one that has %d", got, size)
			}
			r.Must(r.Stop(t.Context(), id, "enough"))
			r.AwaitEnd(id)
		})
	}
}
