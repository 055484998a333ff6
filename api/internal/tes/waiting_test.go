package tes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
)

// TestWaitingTextsAreBounded: texts that wait to be read count among the bytes of bodies that are on their way. Once
// they were here they counted no more, and as many of 8 MiB could wait as there are connections.
func TestWaitingTextsAreBounded(t *testing.T) {
	const most = 1 << 20
	alice := func(context.Context) string { return "alice" }
	task := &Tasks{turns: newTurns(), Config: Config{
		Bodies:  transport.NewBodies(most, most, time.Minute, transport.NewPlaces(1000, "slow", "Slow", "bodies", alice)),
		Refused: func(error) {},
	}}
	for range cap(task.turns.parsing) {
		task.turns.parsing <- struct{}{}
	}
	text := strings.Repeat(" ", most)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	refused := make(chan error, 100)
	for range cap(refused) { // 100 MiB, of which one user may have 64
		all.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "POST", Root+"/tasks", strings.NewReader(text))
			r.Header.Set("Content-Type", wire.TypeJSON)
			refused <- task.create(httptest.NewRecorder(), r, nil)
		})
	}
	for range 30 {
		var p *problem.Problem
		if err := <-refused; !errors.As(err, &p) || p.Status != http.StatusTooManyRequests {
			t.Error(err)
			break
		}
	}
	cancel()
	all.Wait()
}
