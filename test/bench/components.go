package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// component is something else that runs tasks: its handler is measured by a
// benchmark of its own package, beside a bare loop on the component.
type component struct {
	name, of, tag   string
	remedy          string
	programs        []string // without which it cannot run here
	benchtime, fast string
	limit           time.Duration
	figures         []componentFigure
}

// componentFigure is one of the benchmark's results.
type componentFigure struct{ name, result string }

// ofBare is what a handler reaches of its bare component, at least.
const ofBare = 0.80

var containerComponent = component{
	name: "containers", of: "executor/container", tag: "container",
	programs: []string{"dockerd", "podman", "runc", "busybox"}, remedy: "bash .ci/engines install",
	benchtime: "40x", fast: "10x", limit: 3 * time.Minute,
	figures: []componentFigure{{"tasks/s in containers, dockerd", "Tasks/docker"}, {"tasks/s in containers, Podman", "Tasks/podman"}},
}

var kubeComponent = component{
	name: "kubernetes", of: "executor/kube", tag: "kube",
	programs: []string{"containerd", "runc", "busybox", "ip"}, remedy: "bash .ci/kube install && bash .ci/kube build",
	benchtime: "200x", fast: "100x", limit: 3 * time.Minute,
	figures: []componentFigure{{"tasks/s as Jobs of Kubernetes", "Tasks"}},
}

func measureContainers(ctx context.Context, env environment, t *table) error {
	return containerComponent.measure(ctx, env, t)
}

func measureKubernetes(ctx context.Context, env environment, t *table) error {
	return kubeComponent.measure(ctx, env, t)
}

// measure runs the benchmark, or says in each figure's place why it did not.
func (c component) measure(ctx context.Context, env environment, t *table) error {
	if why := c.missing(); why != "" {
		fmt.Fprintf(env.notes, "%s: NOT MEASURED: %s\n", c.name, why)
		for _, f := range c.figures {
			t.add(figure{name: f.name, measured: math.NaN(), unit: "1/s", note: "NOT MEASURED: " + why})
		}
		return nil
	}
	bench := goBench{of: c.of, tags: c.tag, pattern: "^BenchmarkTasks$", benchtime: pick(env, c.benchtime, c.fast), limit: c.limit}
	out, err := bench.run(ctx)
	c.add(t, parseResults(out))
	if err != nil {
		return fmt.Errorf("run benchmarks of %s: %w\n%s", c.of, err, out)
	}
	return nil
}

// add shows the handler's rate beside the bare component's.
func (c component) add(t *table, results []result) {
	for _, f := range c.figures {
		r := find(results, f.result)
		fig := figure{
			name: f.name, measured: r.value("tasks/s"), limit: r.value("bare/s"), unit: "1/s", aim: aim{minRatio: ofBare},
			note: "limit: the same containers or Jobs by a bare loop",
		}
		if calls := r.value("calls/task"); !math.IsNaN(calls) {
			fig.note += fmt.Sprintf("; %.1f API calls a task", calls)
		}
		t.add(fig)
	}
}

// missing says why the component cannot be measured here, and what to do; "" if it
// can.
func (c component) missing() string {
	if os.Geteuid() != 0 {
		return "it needs root"
	}
	for _, p := range c.programs {
		if !installed(p) {
			return fmt.Sprintf("there is no %s: %s", p, c.remedy)
		}
	}
	if c.tag == "kube" && !isFile(filepath.Join(os.Getenv("CLOUDSHARE_KUBE_BIN"), "helm")) {
		return "Kubernetes is not built, or CLOUDSHARE_KUBE_BIN does not name its folder: " + c.remedy
	}
	return ""
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil || isFile(filepath.Join("/usr/sbin", program))
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
