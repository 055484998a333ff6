package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/diskuse"
)

// boundOrder fills in what another site's task may have of memory, if it asks for none, and of the disk.
func (h *Handler) boundOrder(o *box.Order) error {
	if o.Task.Owner == h.cfg.Site {
		return nil
	}
	o.MemMiB = h.memShare(o.Task.Need)
	if h.cfg.Scratch < 0 {
		return nil
	}
	free, err := diskuse.Free(h.cfg.Dir)
	if err != nil {
		return fmt.Errorf("measure the room for its scratch: %w", err)
	}
	o.Scratch = free.Bound(h.cfg.Scratch).Bytes
	return nil
}

// checkScratch refuses another site's task that would be over its scratch by the files that it gets.
func (h *Handler) checkScratch(t executor.Task) error {
	if t.Owner == h.cfg.Site || h.cfg.Scratch < 0 || len(t.Files) == 0 {
		return nil
	}
	copied, err := copiedFiles(t.Files)
	if err != nil {
		return err
	}
	return diskuse.Fits(h.cfg.Dir, h.cfg.Scratch, copied)
}

// memShare returns the limit of memory, in MiB, of a task that asks for none; 0 = it asks, or the engine limits none.
func (h *Handler) memShare(need executor.Resources) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if need.MemMiB > 0 || !h.presence.info.MemoryLimit {
		return 0
	}
	return attempts.MemLimit(need, h.presence.machine(&h.cfg).MemMiB/int64(h.cfg.Cores))
}

// setBounds has an attempt held to what its order says.
func (h *Handler) setBounds(w *work, o box.Order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.share, w.most = o.MemMiB, diskuse.Use{Bytes: o.Scratch, Files: diskuse.MaxFiles}
}

// shareOf returns the limit of memory of an attempt that asked for none, 0 = none.
func (h *Handler) shareOf(w *work) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.share
}

// watchDisk looks at what an attempt has on the disk until it has ended, or the handler is closed. Each is looked at by
// itself: one that takes the engine long to count hides no other one.
func (h *Handler) watchDisk(w *work, most diskuse.Use) {
	wait := time.NewTimer(diskuse.NextLook(0))
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-w.Done:
			return
		case <-h.attempts.Quit:
			return
		}
		began := time.Now()
		h.holdScratch(w, most)
		wait.Reset(diskuse.NextLook(time.Since(began)))
	}
}

// boundOf returns what an attempt may have on the disk; no bytes = no bound.
func (h *Handler) boundOf(w *work) diskuse.Use {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.most
}

// holdScratch has an attempt killed that has too much on the disk: its first process says that it failed by that. Two
// looks must find it so, since one counts a file twice that is renamed meanwhile.
func (h *Handler) holdScratch(w *work, most diskuse.Use) {
	why := h.findOver(w, most)
	if why != "" {
		why = h.findOver(w, most)
	}
	if why == "" {
		return
	}
	if _, err := box.GoneOver(w.dir, why); err != nil {
		h.cfg.Logger.Warn().Err(err).Str("attempt", w.Name).Msg("attempt is over its scratch and was not told, will be tried again")
	}
}

// findOver looks at whatever an attempt can write to, and returns what it has too much of, "" = of nothing.
func (h *Handler) findOver(w *work, most diskuse.Use) (why string) {
	walk := &diskuse.Walk{Most: most, Where: "its folders and its image's files", Pass: h.passOpen}
	err := countFolder(w, walk)
	if err == nil {
		ctx, cancel := h.patience()
		defer cancel()
		err = h.countLayer(ctx, w, walk, anyDisk)
	}
	if !errors.Is(err, diskuse.ErrOver) {
		return ""
	}
	return walk.Why
}

// countFolder counts what an attempt can write to in its folder.
func countFolder(w *work, walk *diskuse.Walk) error {
	for _, folder := range []string{box.WorkOf(w.dir), filepath.Join(w.dir, box.Inputs)} {
		if err := walk.Folder(folder); err != nil {
			return err
		}
	}
	for _, name := range box.Written() {
		if err := walk.Add(written(w.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// written returns how many bytes count of a file of an attempt's folder: of output, which is bounded by its length,
// what it has beyond its end. One that is gone has none.
func written(dir, name string) int64 {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	defer f.Close()
	bytes := diskuse.Excess(f)
	if st, err := f.Stat(); err == nil && f.Name() == box.Told(dir) {
		bytes += st.Size()
	}
	return bytes
}

// passOpen ends a look when the handler is closed.
func (h *Handler) passOpen() error {
	if isClosed(h.attempts.Quit) {
		return attempts.ErrClosed
	}
	return nil
}

// countLayer counts what an attempt has changed of its image's files, if it counts where the engine has that ("" = it
// does not say): in the engine's folder, where this broker may read it, else by the engine's word. An engine that does
// not answer is an error, and asked at the next look.
func (h *Handler) countLayer(ctx context.Context, w *work, walk *diskuse.Walk, counts func(upper string) bool) error {
	if h.cfg.ReadOnly {
		return nil
	}
	c, err := h.engine.Inspect(ctx, h.container(w))
	if err != nil {
		return err
	}
	upper := c.GraphDriver.Data["UpperDir"]
	if !counts(upper) {
		return nil
	}
	if upper != "" && unix.Access(upper, unix.R_OK|unix.X_OK) == nil {
		return walk.Folder(upper)
	}
	size, err := h.engine.LayerSize(ctx, h.container(w))
	if err != nil {
		return err
	}
	return walk.Add(size)
}

// anyDisk has a layer count wherever it is.
func anyDisk(string) bool { return true }

// boundStatus says what another site's container may have of memory, if it asks for none, and of the disk.
func (p *presence) boundStatus(c *Config) string {
	memory := "; another site's container that asks for no memory has a share by its cores"
	if !p.info.MemoryLimit {
		memory = "; memory is not limited: the engine's machine has no cgroup for it"
	}
	switch {
	case c.Scratch < 0:
		return memory
	case c.Scratch == 0:
		return memory + "; one has a quarter of the free disk for scratch"
	}
	return memory + fmt.Sprintf("; one has %s of scratch", diskuse.Mebibytes(c.Scratch))
}
