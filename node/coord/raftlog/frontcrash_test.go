package raftlog

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// filmed calls look before and after every write of bolt.
type filmed struct {
	disk
	look func()
}

func (f filmed) StoreLogs(l []*raft.Log) error {
	f.look()
	defer f.look()
	return f.disk.StoreLogs(l)
}

func (f filmed) SetUint64(k []byte, v uint64) error {
	f.look()
	defer f.look()
	return f.disk.SetUint64(k, v)
}

func (f filmed) DeleteRange(from, to uint64) error {
	f.look()
	defer f.look()
	return f.disk.DeleteRange(from, to)
}

// TestFrontStoppedAnywhere: a crash between any two writes of an operation leaves
// the log as it was before that, or as it is behind it.
func TestFrontStoppedAnywhere(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		m := frontModel{dir: folder(rt, root), first: 1}
		var scenes []string
		b, err := openBolt(filepath.Join(m.dir, "raft.db"))
		if err != nil {
			rt.Fatal(err)
		}
		d := filmed{b, func() {}}
		f, err := openFront(&d, filepath.Join(m.dir, walName), 16<<10)
		if err != nil {
			rt.Fatal(err)
		}
		m.d = f
		defer func() { _ = m.d.Close() }()
		d.look = func() {
			to := folder(rt, root)
			crashed(rt, m.dir, to)
			scenes = append(scenes, to)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "operations") {
			before := m
			before.logs = append([]*raft.Log(nil), m.logs...)
			scenes = nil
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				m.remove(rt, true)
			case 1:
				m.remove(rt, false)
			default:
				m.append(rt)
			}
			d.look()
			for _, dir := range scenes {
				if !before.isIn(rt, dir) && !m.isIn(rt, dir) {
					rt.Fatalf("%s is neither before nor behind the operation", dir)
				}
			}
		}
	})
}

// isIn reports whether a copy holds what the model has.
func (m *frontModel) isIn(rt *rapid.T, dir string) bool {
	d, err := openStore(dir)
	if err != nil {
		rt.Fatal(err)
	}
	defer d.Close()
	first, err1 := d.FirstIndex()
	last, err2 := d.LastIndex()
	if err = errors.Join(err1, err2); err != nil {
		rt.Fatal(err)
	}
	if len(m.logs) == 0 {
		return first == 0 && last == 0
	}
	if first != m.first || last != first+uint64(len(m.logs))-1 {
		return false
	}
	for _, want := range m.logs {
		var got raft.Log
		if err = d.GetLog(want.Index, &got); err != nil || got.Term != want.Term || len(got.Data) != len(want.Data) {
			return false
		}
	}
	return true
}
