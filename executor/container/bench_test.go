//go:build container

package container_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// lanes is how many tasks run at a time in the figures.
const lanes = 2

// BenchmarkTasks is the figure "container tasks a second, beside a bare loop on
// the engine": rounds of both in turn, so that both meet the same machine. The
// bare loop makes, starts, waits for and removes containers with the same limits.
func BenchmarkTasks(b *testing.B) {
	for _, kind := range []string{engines.Docker, engines.Podman} {
		b.Run(kind, func(b *testing.B) {
			e := engines.Start(b, kind)
			h, err := container.Open(container.Config{
				Keeping: attempts.Keeping{Dir: filepath.Join(b.TempDir(), "container"), Site: "site-2"},
				Engine:  e.Address, Cores: lanes, Network: "none", Executable: program,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			if _, err = h.Adopt(b.Context()); err != nil {
				b.Fatal(err)
			}
			var bare, ours time.Duration
			const round = 10
			token := uint64(0)
			b.ResetTimer()
			for n := 0; n < b.N; n += round {
				began := time.Now()
				runBare(b, e, round)
				bare += time.Since(began)
				began = time.Now()
				token++
				runOurs(b, h, round, token)
				awaitNone(b, e) // they are removed aside: that is work of ours, too
				ours += time.Since(began)
			}
			done := float64((b.N + round - 1) / round * round)
			b.ReportMetric(done/bare.Seconds(), "bare/s")
			b.ReportMetric(done/ours.Seconds(), "tasks/s")
			b.ReportMetric(bare.Seconds()/ours.Seconds(), "of-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func runOurs(b *testing.B, h *container.Handler, n int, token uint64) {
	b.Helper()
	begun, ended := 0, 0
	for ended < n {
		for ; begun < n && begun-ended < lanes; begun++ {
			t := executor.Task{
				ID:    executor.ID{Job: "site-1.1", Task: uint32(begun), Attempt: 1, Token: token},
				Owner: "site-1", Site: "site-2", Need: executor.Resources{MilliCPU: 1000}, Image: engines.Image, Command: []string{"/bin/true"},
			}
			if err := h.Start(b.Context(), t); err != nil {
				b.Fatal(err)
			}
		}
		e := <-h.Events()
		if e.Ended == nil {
			continue
		}
		ended++
		if e.Ended.ExitCode != 0 {
			b.Fatalf("%s: %+v", e.ID, *e.Ended)
		}
	}
}

func runBare(b *testing.B, e *engines.Engine, n int) {
	b.Helper()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	var wg sync.WaitGroup
	for range lanes {
		wg.Go(func() {
			for range work {
				if err := bareOne(b.Context(), e); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func bareOne(ctx context.Context, e *engines.Engine) error {
	body, err := json.Marshal(map[string]any{
		"Image": engines.Image, "Entrypoint": []string{"/bin/true"},
		"HostConfig": map[string]any{
			"NetworkMode": "none", "NanoCpus": 1e9, "PidsLimit": 4096, "CapDrop": []string{"ALL"}, "SecurityOpt": []string{"no-new-privileges"},
			"CgroupnsMode": "private", "LogConfig": map[string]any{"Type": "none"},
		},
	})
	if err != nil {
		return err
	}
	raw, err := e.Call(ctx, http.MethodPost, "/v1.41/containers/create", bytes.NewReader(body))
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"Id"`
	}
	if err = json.Unmarshal(raw, &made); err != nil {
		return err
	}
	at := "/v1.41/containers/" + made.ID
	for _, call := range [][2]string{{http.MethodPost, at + "/start"}, {http.MethodPost, at + "/wait"}, {http.MethodDelete, at + "?force=1"}} {
		if _, err = e.Call(ctx, call[0], call[1], nil); err != nil {
			return err
		}
	}
	return nil
}
