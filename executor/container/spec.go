package container

import (
	"cmp"
	"strconv"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// ownEnv keeps what an image says to programs of this kind from the first process;
// the task's environment is made elsewhere.
var ownEnv = []string{"GOMAXPROCS=1", "GOTRACEBACK=all", "GODEBUG=", "GOGC=", "GOMEMLIMIT="}

// minMilli is the least processor time that engines limit a container to.
const minMilli = 10

// template is what the containers of a handler have in common.
type template struct {
	cfg    *Config
	home   string // Handler.id
	run    string // folder of the first process
	mounts []engine.Mount
}

// spec returns an attempt's container, held to its cores by a limit.
func (m *template) spec(w *work, ref executor.ImageName, o box.Order, by limit) engine.Spec {
	c, t := m.cfg, w.Task
	network := m.networkOf(w)
	s := engine.Spec{
		Image: ref.String(), User: c.User, Labels: m.labels(t),
		Entrypoint: []string{w.place(box.Run) + "/" + box.Program}, Cmd: []string{box.Verb}, Env: ownEnv,
		NetworkDisabled: network == noNetwork, StopSignal: "SIGKILL", // its first process heeds no other
		HostConfig: engine.HostConfig{
			Mounts: m.mountsOf(w), NetworkMode: network,
			PidsLimit: c.Pids, CapDrop: []string{"ALL"}, CapAdd: c.CapAdd, SecurityOpt: []string{"no-new-privileges"},
			ReadonlyRootfs: c.ReadOnly, CgroupnsMode: "private", CgroupParent: c.CgroupParent,
			LogConfig: engine.LogConfig{Type: "none"},
		},
	}
	if o.Image.Healthcheck { // it would run besides the task
		s.Healthcheck = &engine.Healthcheck{Test: []string{"NONE"}}
	}
	if len(o.CPUs) > 0 {
		s.HostConfig.CpusetCpus = engine.CPUSet(o.CPUs)
	} else if by == byQuota {
		s.HostConfig.NanoCpus = max(w.Hold.MilliCPU, minMilli) * 1e6
	}
	if mem := cmp.Or(t.Need.MemMiB, o.MemMiB); mem > 0 {
		s.HostConfig.Memory = (mem + ownMiB) << 20
		s.HostConfig.MemorySwap = s.HostConfig.Memory // no swap
	}
	if c.ReadOnly {
		s.HostConfig.Tmpfs = map[string]string{"/tmp": "rw,nosuid,nodev,mode=1777"}
	}
	return s
}

func (m *template) mountsOf(w *work) []engine.Mount {
	bind := func(from, to string, ro bool) engine.Mount {
		return engine.Mount{Type: "bind", Source: from, Target: to, ReadOnly: ro}
	}
	list := []engine.Mount{
		bind(m.run, w.place(box.Run), true), bind(w.dir, w.place(box.Box), true),
		bind(box.WorkOf(w.dir), box.Work, false),
	}
	for _, name := range box.Written() {
		list = append(list, bind(w.dir+"/"+name, w.place(box.Box)+"/"+name, false))
	}
	return append(append(list, m.mounts...), w.files...)
}

// place returns where one of our own places is in the container.
func (w *work) place(of string) string {
	if w.root == "" {
		return of
	}
	return box.PlaceAt(w.root, of)
}

// labels name the attempt for people and for [Handler.catchUp].
func (m *template) labels(t executor.Task) map[string]string {
	return map[string]string{
		labelHome: m.home, labelName: t.ID.String(),
		"cloudshare.federation": m.cfg.Federation, "cloudshare.site": t.Site, "cloudshare.owner": t.Owner,
		"cloudshare.job": t.Job, "cloudshare.task": strconv.FormatUint(uint64(t.ID.Task), 10),
		"cloudshare.attempt": strconv.FormatUint(uint64(t.Attempt), 10),
		"cloudshare.token":   strconv.FormatUint(t.Token, 10),
	}
}

// Labels by which containers are found again.
const (
	labelHome = "cloudshare.home" // whose they are
	labelName = "cloudshare.name" // the attempt
)
