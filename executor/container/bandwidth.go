package container

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// reach is what disks other sites' containers reach, as far as they are to be bounded.
type reach struct {
	devices []string // files of those that are bounded
	unbound []string // why others are not
}

// findReach finds the disks of the handler's folder, of the mounts, and of the engine's own folder with its images and
// what containers write, "" = not known yet.
func findReach(c *Config, engineDir string) (r reach) {
	if c.IO == (attempts.Bandwidth{}) {
		return reach{}
	}
	paths := []string{c.Dir}
	mounts, _ := c.mounts() // Validate has seen them
	for _, m := range mounts {
		paths = append(paths, m.Source)
	}
	if engineDir != "" {
		paths = append(paths, engineDir)
	}
	disks, unbound := attempts.FindDisks(paths...)
	r.unbound = unbound
	for _, disk := range disks {
		if device, err := attempts.DeviceFile(disk); err != nil {
			r.unbound = append(r.unbound, err.Error())
		} else {
			r.devices = append(r.devices, device)
		}
	}
	return r
}

// reach returns what is known of it now.
func (h *Handler) reach() reach {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.presence.reach
}

// bound bounds what a container reads and writes of disks.
func (r *reach) bound(c *engine.HostConfig, most attempts.Bandwidth) {
	for _, device := range r.devices {
		for _, of := range []struct {
			list *[]engine.ThrottleDevice
			rate int64
		}{
			{&c.BlkioDeviceReadBps, most.ReadBytes},
			{&c.BlkioDeviceWriteBps, most.WriteBytes},
			{&c.BlkioDeviceReadIOps, most.Reads},
			{&c.BlkioDeviceWriteIOps, most.Writes},
		} {
			if of.rate > 0 {
				*of.list = append(*of.list, engine.ThrottleDevice{Path: device, Rate: of.rate})
			}
		}
	}
}

// ioStatus says what of the site's bound of disks holds, "" = it has none.
func (p *presence) ioStatus(c *Config) string {
	if c.IO == (attempts.Bandwidth{}) {
		return ""
	}
	unable := slices.IndexFunc(p.info.Warnings, func(w string) bool {
		return strings.Contains(w, "blkio throttle") || strings.Contains(w, "io.max")
	})
	switch {
	case unable >= 0:
		return "; sandbox.io is not enforced in containers: the engine says " + p.info.Warnings[unable]
	case len(p.reach.devices) == 0:
		return "; sandbox.io is not enforced in containers: " + strings.Join(p.reach.unbound, ", ")
	}
	if p.unbounded != nil {
		return fmt.Sprintf("; sandbox.io: the engine refused another site's container with %s of disks %s: %v; such tasks are "+
			"declined until it takes one: have it bound these disks (does it have the io controller?), or change sandbox.io",
			c.IO, strings.Join(p.reach.devices, ", "), p.unbounded)
	}
	s := fmt.Sprintf("; another site's container has %s of disks %s", c.IO, strings.Join(p.reach.devices, ", "))
	if len(p.reach.unbound) > 0 {
		s += "; not bounded: " + strings.Join(p.reach.unbound, ", ")
	}
	return s
}

// noteBounds notes how the start of a container with bounds went.
func (h *Handler) noteBounds(err error) {
	said, refused := errors.AsType[*engine.Refusal](err)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.presence.unbounded = nil
	case refused && !h.isImages(said.Message) && h.presence.reach.isNamed(said.Message):
		h.presence.unbounded = said
	}
}

// isNamed reports whether an engine's words are of a container's bounds: which it means engines say in words only.
func (r *reach) isNamed(message string) bool {
	said := func(words string) bool { return strings.Contains(strings.ToLower(message), words) }
	return slices.ContainsFunc([]string{"io.max", "blkio", "throttle", "controller `io`", "io limit"}, said) ||
		slices.ContainsFunc(r.devices, func(device string) bool { return strings.Contains(message, device) })
}
