package books

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

func need(milli, mem int64) executor.Resources {
	return executor.Resources{MilliCPU: milli, MemMiB: mem}
}

// TestRoom: cores are counted whole, CPUs given out once and taken back.
func TestRoom(t *testing.T) {
	r := NewRoom("m", 2, 100, []int{4, 6, 8})
	a, err := r.Take(need(500, 60))
	if err != nil || a.Cores != 1 || len(a.CPUs) != 1 {
		t.Fatalf("got %+v, %v", a, err)
	}
	if _, err := r.Take(need(1000, 60)); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("more memory than is free: %v", err)
	}
	b, err := r.Take(need(1000, 40))
	if err != nil || b.CPUs[0] == a.CPUs[0] {
		t.Errorf("got %+v beside %+v, %v", b, a, err)
	}
	if _, err := r.Take(need(1, 0)); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("a third core: %v", err)
	}
	r.Release(a)
	if c, err := r.Take(need(1000, 60)); err != nil || c.CPUs[0] != a.CPUs[0] {
		t.Errorf("got %+v, %v; want what was given back", c, err)
	}
}

// TestRoomAdopts what runs already, whether it fits or not.
func TestRoomAdopts(t *testing.T) {
	r := NewRoom("m", 1, 100, []int{0})
	a := r.Adopt(need(3000, 500), []int{0, 7})
	if a.Cores != 3 || len(a.CPUs) != 1 {
		t.Errorf("got %+v", a)
	}
	if _, err := r.Take(need(1, 0)); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("beside it: %v", err)
	}
	r.Release(a)
	if _, err := r.Take(need(1000, 100)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestRoomUnfit(t *testing.T) {
	r := NewRoom("m", 2, 100, nil)
	for name, task := range map[string]executor.Task{
		"cores": {Need: need(2001, 0)}, "memory": {Need: need(1, 101)}, "negative": {Need: need(1, -1)},
		"GPU": {Need: executor.Resources{GPU: 1}}, "machine": {Machine: "other"},
	} {
		if err := r.Fit(task); !errors.Is(err, executor.ErrUnfit) {
			t.Errorf("%s: got %v, want ErrUnfit", name, err)
		}
	}
	if err := r.Fit(executor.Task{Need: need(2000, 100), Machine: "m"}); err != nil {
		t.Error(err)
	}
}
