package container

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container/box"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// noNetwork is the engine's name of none.
const noNetwork = "none"

// networkOf returns a task's network, by the engine's name.
func (m *template) networkOf(w *work) string {
	switch m.cfg.Foreign.Of(w.Task, m.cfg.Site) {
	case executor.NetworkOutbound:
		return "container:" + m.keeper(w)
	case executor.NetworkNone:
		return noNetwork
	case executor.NetworkHost:
	}
	return m.cfg.Network
}

// keeper is the name of the container that has the network of an attempt's.
func (m *template) keeper(w *work) string { return m.container(w) + "-network" }

// container returns the name that the engine knows the attempt's container by.
func (m *template) container(w *work) string { return "cloudshare-" + m.home + "-" + w.Name }

// network returns what other sites' tasks have here if they ask.
func (p *presence) network(c *Config) executor.Network {
	switch {
	case c.Foreign == executor.NetworkHost && c.Network == noNetwork:
		return executor.NetworkNone
	case c.Foreign == executor.NetworkOutbound && p.noOutbound != nil:
		return executor.NetworkNone
	}
	return c.Foreign
}

// networkStatus says what other sites' tasks have, for people.
func (p *presence) networkStatus(c *Config) string {
	switch p.network(c) {
	case executor.NetworkOutbound:
		return "other sites' tasks reach the world, but no private address, if their jobs ask for a network"
	case executor.NetworkHost:
		return "other sites' tasks have the network of this site's, if their jobs ask for one"
	case executor.NetworkNone:
	}
	if p.noOutbound != nil {
		return fmt.Sprintf("other sites' tasks have no network: outbound does not hold on this engine: %v", p.noOutbound)
	}
	return "other sites' tasks have no network"
}

// maxLimiting is how long a network may take to be limited.
const maxLimiting = 20 * time.Second

// openNetwork makes the network that an attempt's container joins: a container without
// a task, on a network of the engine's that this handler's strangers alone are on, whose
// only process refuses what must not be reached. That holds without rights on this
// machine's firewall, which neither the broker nor the engine need have.
func (h *Handler) openNetwork(w *work, image executor.ImageName) error {
	err := h.keepNetwork(w, image)
	said, refused := errors.AsType[*engine.Refusal](err)
	switch {
	case err == nil, errors.Is(err, engine.ErrAway), errors.Is(err, attempts.ErrClosed), w.aborted.Err() != nil:
	case refused && h.isImages(said.Message): // no job may have the site give up its network
	default:
		h.mu.Lock()
		h.presence.noOutbound = err
		h.attempts.Events.Put(executor.Event{Capacity: true})
		h.mu.Unlock()
	}
	return err
}

func (h *Handler) keepNetwork(w *work, image executor.ImageName) error {
	if err := box.MakeNetworkFile(w.dir); err != nil {
		return err
	}
	path, _ := box.NetworkPath(w.dir)
	told, unlist, err := h.desk.Notices.Add(path)
	if err != nil {
		return err
	}
	defer unlist()
	ctx, cancel := h.patience()
	defer cancel()
	if err = h.engine.MakeNetwork(ctx, h.template.bridge()); err != nil {
		return err
	}
	if err = h.runKeeper(ctx, w, image); err != nil {
		return err
	}
	late := time.NewTimer(maxLimiting)
	defer late.Stop()
	for {
		if ready, err := box.HearNetwork(w.dir); ready || err != nil {
			return err
		}
		select {
		case <-told:
		case <-late.C:
			return fmt.Errorf("the process that limits its network has not told anything for %s", maxLimiting)
		case <-w.aborted.Done():
			return context.Cause(w.aborted)
		case <-h.attempts.Quit:
			return attempts.ErrClosed
		}
	}
}

func (h *Handler) runKeeper(ctx context.Context, w *work, image executor.ImageName) error {
	// What listens on all of this machine's addresses is not strangers'; the servers that it asks for names are
	// those that engines ask for containers, too.
	spec := h.template.keeperSpec(w, image.String(), box.OwnAddresses(), box.NameServers())
	name := h.template.keeper(w)
	if _, err := h.engine.Create(ctx, name, spec); err != nil && !errors.Is(err, engine.ErrConflict) {
		return fmt.Errorf("make the container of its network: %w", err)
	}
	if err := h.engine.Start(ctx, name); err != nil {
		return fmt.Errorf("start the container of its network: %w", err)
	}
	return nil
}

// bridge is the engine's network of all strangers' containers of this handler.
func (m *template) bridge() engine.NetworkSpec {
	return engine.NetworkSpec{
		Name: "cloudshare-" + m.home, Driver: "bridge", Labels: map[string]string{labelHome: m.home},
	}
}

// keeperSpec is the container that has an attempt's network. Its user is root: of its
// namespaces, with the right to limit its network and no other.
func (m *template) keeperSpec(w *work, image string, refused, servers []netip.Addr) engine.Spec {
	outside, inside := box.NetworkPath(w.dir)
	return engine.Spec{
		Image: image, User: "0:0", WorkingDir: "/", Labels: m.labels(w.Task), Env: ownEnv,
		Entrypoint:  []string{box.Run + "/" + box.Program},
		Cmd:         []string{box.NetworkVerb, box.NetworkArgument(refused, servers)},
		Healthcheck: &engine.Healthcheck{Test: []string{"NONE"}},
		HostConfig: engine.HostConfig{
			Mounts: []engine.Mount{
				{Type: "bind", Source: m.run, Target: box.Run, ReadOnly: true},
				{Type: "bind", Source: outside, Target: inside},
			},
			NetworkMode: m.bridge().Name, PidsLimit: minPids,
			CapDrop: []string{"ALL"}, CapAdd: []string{"NET_ADMIN"}, SecurityOpt: []string{"no-new-privileges"},
			ReadonlyRootfs: true, CgroupnsMode: "private", CgroupParent: m.cfg.CgroupParent,
			LogConfig: engine.LogConfig{Type: "none"},
		},
	}
}
