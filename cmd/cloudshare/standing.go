package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/node/coord/zk"
)

// standing is what a site's data on one backend say of where it has been. A site
// whose federation has moved has some on both: those of the later epoch count.
type standing struct {
	backend    string // "" = none
	site       string
	node       [16]byte
	federation [16]byte
	lineage    [16]byte
	epoch      uint64
	pending    bool // no configuration has come yet: it may join through other peers
}

// standingOn reads member.json of one backend's folder. What does not read is
// left for the backend to refuse.
func standingOn(dir, backend, folder string) (standing, error) {
	text, err := os.ReadFile(filepath.Join(dir, folder, "member.json"))
	if errors.Is(err, os.ErrNotExist) {
		return standing{}, nil
	}
	if err != nil {
		return standing{}, fmt.Errorf("look into data_dir: %w", err)
	}
	var m struct {
		Site, Node          string
		Federation, Lineage string
		Epoch               uint64
		Follow              []string
	}
	_ = json.Unmarshal(text, &m)
	s := standing{backend: backend, site: m.Site, node: idOf(m.Node), federation: idOf(m.Federation), lineage: idOf(m.Lineage), epoch: m.Epoch, pending: backend == onRaft && len(m.Follow) > 0}
	if m.Lineage == "" {
		s.lineage = s.federation
	}
	return s, nil
}

// standings are those on Raft and on ZooKeeper.
func standings(dir string) (onRaftIs, onZKIs standing, err error) {
	if onRaftIs, err = standingOn(dir, onRaft, raftDir); err == nil {
		onZKIs, err = standingOn(dir, onZooKeeper, zkDir)
	}
	return onRaftIs, onZKIs, err
}

// latest is the standing that counts.
func latest(dir string) (standing, error) {
	r, z, err := standings(dir)
	if z.backend != "" && (r.backend == "" || z.epoch > r.epoch) {
		return z, err
	}
	return r, err
}

// dataOn says which backend the data in dir are on: "" for none. A join that was
// refused leaves nothing that would stand in the way of the next one.
func dataOn(dir string) (backend string, err error) {
	s, err := latest(dir)
	return s.backend, err
}

// zkMember is the configuration of a member on ZooKeeper.
type zkMember struct{ zk.Config }

// comesFrom lets a site whose data are on Raft go on in the tree that its
// federation has moved to, and in no other.
func (c *zkMember) comesFrom(dir string) error {
	r, z, err := standings(dir)
	if err != nil || r.backend == "" || z.backend != "" && z.epoch > r.epoch {
		return err
	}
	c.MinEpoch = r.epoch + 1
	if z.backend == "" {
		c.Join, c.Federation = true, r.federation
	}
	return nil
}

// idOf is an id in hex; zero if it is none.
func idOf(text string) (id [16]byte) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(id) {
		id = [16]byte(b)
	}
	return id
}
