package local

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one line of the process table. Pid and start together name a
// process forever.
type process struct {
	pid, parent int
	start       uint64 // clock ticks since boot
	zombie      bool
	// bare: it has no environment, for certain. One that is between its old program
	// and its new one only seems to have none.
	bare bool
}

// readProcess reads one process; ok is false when there is none.
func readProcess(pid int) (p process, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name is in parentheses and may itself hold anything.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return process{}, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return process{}, false
	}
	p = process{pid: pid, zombie: f[0] == "Z" || f[0] == "X"}
	var err2 error
	if p.parent, err = strconv.Atoi(f[1]); err != nil {
		return process{}, false
	}
	if p.start, err2 = strconv.ParseUint(f[19], 10, 64); err2 != nil {
		return process{}, false
	}
	const size, envStart, envEnd = 20, 47, 48 // the kernel's own threads have no memory
	p.bare = len(f) <= envEnd || f[size] == "0" || f[envStart] == f[envEnd] && f[envEnd] != "0"
	return p, true
}

// pids lists every process of the machine that we can see.
func pids() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// descendants lists all living processes below root, parents first.
func descendants(root int) []process {
	children := map[int][]process{}
	for _, pid := range pids() {
		if p, ok := readProcess(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var out []process
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		for _, p := range children[todo[0]] {
			todo = append(todo, p.pid)
			if !p.zombie {
				out = append(out, p)
			}
		}
	}
	return out
}

// signal sends sig to exactly this process: a pid that was used again
// meanwhile is not hit.
func (p process) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := readProcess(p.pid); ok && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// signalTree signals all descendants of root.
func signalTree(root int, sig unix.Signal) {
	for _, p := range descendants(root) {
		p.signal(sig)
	}
}

// marked lists the living processes whose environment holds this entry. unsure:
// there are some whose environment could not be seen yet.
func marked(entry string) (out []process, unsure bool) {
	want := []byte(entry)
	for _, pid := range pids() {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || len(b) > 0 && !hasEntry(b, want) {
			continue
		}
		p, ok := readProcess(pid)
		switch {
		case !ok || p.zombie:
		case len(b) > 0:
			out = append(out, p)
		default:
			unsure = unsure || !p.bare
		}
	}
	return out, unsure
}

func hasEntry(environ, entry []byte) bool {
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(kv, entry) {
			return true
		}
	}
	return false
}
