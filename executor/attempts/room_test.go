package attempts

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

func need(milli, mem int64) executor.Resources {
	return executor.Resources{MilliCPU: milli, MemMiB: mem}
}

// take takes room that is there.
func take(t *testing.T, r *Room, milli, mem int64) Hold {
	t.Helper()
	h, err := r.Take(need(milli, mem))
	if err != nil {
		t.Fatalf("%d milli-cores, %d MiB: %v", milli, mem, err)
	}
	return h
}

// TestRoom: what is taken is not there for others, and is given back.
func TestRoom(t *testing.T) {
	r := NewRoom("m", 2, 100, nil)
	a := take(t, r, 500, 60)
	if _, err := r.Take(need(1000, 60)); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("more memory than is free: %v", err)
	}
	take(t, r, 1500, 40)
	if _, err := r.Take(need(0, 0)); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("more than two cores: %v", err)
	}
	r.Release(a)
	if h := take(t, r, 500, 60); h.CPUs != nil {
		t.Errorf("pinned without CPUs: %+v", h)
	}
}

// TestCPUsAreGivenOut: whole ones to one attempt each, parts of cores to one that they
// share, also where a process may use only some CPUs of its machine.
func TestCPUsAreGivenOut(t *testing.T) {
	r := NewRoom("m", 4, 100, []int{4, 6, 8, 11})
	half, other := take(t, r, 500, 0), take(t, r, 500, 0)
	one := take(t, r, 1000, 0)
	more := take(t, r, 1200, 0)
	part := take(t, r, 800, 0)
	for what, got := range map[string][2][]int{
		"half a core": {half.CPUs, {4}}, "another half": {other.CPUs, {4}}, "a core": {one.CPUs, {6}},
		"more than one": {more.CPUs, {8, 11}}, "what fits beside it": {part.CPUs, {11}},
	} {
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%s: got %v, want %v", what, got[0], got[1])
		}
	}
	r.Release(one)
	if again := take(t, r, 1000, 0); !slices.Equal(again.CPUs, []int{6}) {
		t.Errorf("got %v, want what was given back", again.CPUs)
	}
}

// TestMoreCoresThanCPUs: a site that offers more cores than its broker may use CPUs
// has them shared evenly, and none stays idle.
func TestMoreCoresThanCPUs(t *testing.T) {
	r := NewRoom("m", 6, 100, []int{0, 1, 2})
	on := map[int]int{}
	for range 6 {
		for _, cpu := range take(t, r, 1000, 0).CPUs {
			on[cpu]++
		}
	}
	if on[0] != 2 || on[1] != 2 || on[2] != 2 {
		t.Errorf("attempts by CPU: %v", on)
	}
	big := NewRoom("m", 6, 100, []int{0, 1, 2})
	h := take(t, big, 5000, 0)
	if len(h.CPUs) != 3 {
		t.Errorf("five cores of three CPUs: %v", h.CPUs)
	}
	big.Release(h)
	if len(big.cpus.load) != 0 {
		t.Errorf("left on CPUs: %v", big.cpus.load)
	}
}

// TestNoCPUIsSharedWhileOthersAreFree: with whatever comes and goes, as long as tasks
// ask for whole cores.
func TestNoCPUIsSharedWhileOthersAreFree(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	cpus := []int{1, 2, 3, 5, 8, 13, 21, 34}
	r := NewRoom("m", len(cpus), 100, cpus)
	var held []Hold
	for range 10_000 {
		if h, err := r.Take(need(1000*(1+random.Int64N(3)), 0)); err == nil {
			held = append(held, h)
		}
		if len(held) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(held))
			r.Release(held[i])
			held = slices.Delete(held, i, i+1)
		}
		by := map[int]bool{}
		for _, h := range held {
			for _, cpu := range h.CPUs {
				if by[cpu] {
					t.Fatalf("CPU %d is given out twice: %+v", cpu, held)
				}
				by[cpu] = true
			}
		}
	}
	for _, h := range held {
		r.Release(h)
	}
	if len(r.cpus.load) != 0 || r.freeMilli != r.milli {
		t.Errorf("left: %v, %d of %d", r.cpus.load, r.freeMilli, r.milli)
	}
}

// TestRoomAdopts what runs already, whether it fits or not, on the CPUs it has, which
// others get only when there are no better ones.
func TestRoomAdopts(t *testing.T) {
	r := NewRoom("m", 1, 100, []int{0})
	a := r.Adopt(need(3000, 500), []int{0, 7})
	if _, err := r.Take(need(1, 0)); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("beside it: %v", err)
	}
	r.Release(a)
	take(t, r, 1000, 100)
	two := NewRoom("m", 2, 100, []int{0, 1})
	two.Adopt(need(1000, 0), []int{0})
	if h := take(t, two, 1000, 0); !slices.Equal(h.CPUs, []int{1}) {
		t.Errorf("beside one on CPU 0: %v", h.CPUs)
	}
}

// TestCPUsComeAndGo: a changed cpuset counts for the attempts that come.
func TestCPUsComeAndGo(t *testing.T) {
	r := NewRoom("m", 2, 100, []int{0, 1})
	old := take(t, r, 1000, 0)
	r.Use([]int{2, 3})
	if h := take(t, r, 1000, 0); !slices.Equal(h.CPUs, []int{2}) {
		t.Errorf("got %v", h.CPUs)
	}
	r.Release(old)
	if h := take(t, r, 1000, 0); !slices.Equal(h.CPUs, []int{3}) {
		t.Errorf("got %v", h.CPUs)
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
