package config

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// DataState is what a site's data on one backend say of where it has been. A site
// whose federation has moved has some on both: those of the later epoch count.
type DataState struct {
	// Backend is empty if there are no data.
	Backend    string
	Site       string
	Node       [16]byte
	Federation [16]byte
	Lineage    [16]byte
	Epoch      uint64

	pending bool // no configuration has come yet: it may join through other peers
}

// readDataState reads member.json of one backend's folder. What does not read is
// left for the backend to refuse.
func readDataState(dir, backend, folder string) (DataState, error) {
	text, err := os.ReadFile(filepath.Join(dir, folder, "member.json"))
	if errors.Is(err, os.ErrNotExist) {
		return DataState{}, nil
	}
	if err != nil {
		return DataState{}, fmt.Errorf("look into data_dir: %w", err)
	}
	var m struct {
		Site, Node          string
		Federation, Lineage string
		Epoch               uint64
		Follow              []string
	}
	_ = json.Unmarshal(text, &m)
	s := DataState{
		Backend: backend, Site: m.Site, Node: ParseID(m.Node), Federation: ParseID(m.Federation),
		Lineage: ParseID(m.Lineage), Epoch: m.Epoch, pending: backend == Raft && len(m.Follow) > 0,
	}
	if m.Lineage == "" {
		s.Lineage = s.Federation
	}
	return s, nil
}

// DataStates returns what the data in dir say on Raft and on ZooKeeper.
func DataStates(dir string) (onRaft, onZK DataState, err error) {
	if onRaft, err = readDataState(dir, Raft, RaftDir); err == nil {
		onZK, err = readDataState(dir, ZooKeeper, ZKDir)
	}
	return onRaft, onZK, err
}

// LatestState returns the state that counts.
func LatestState(dir string) (DataState, error) {
	r, z, err := DataStates(dir)
	if z.Backend != "" && (r.Backend == "" || z.Epoch > r.Epoch) {
		return z, err
	}
	return r, err
}

// DataBackend says which backend the data in dir are on: "" for none. A join that was
// refused leaves nothing that would stand in the way of the next one.
func DataBackend(dir string) (backend string, err error) {
	s, err := LatestState(dir)
	return s.Backend, err
}

// ParseID returns an id in hex; zero if it is none.
func ParseID(text string) (id [16]byte) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(id) {
		id = [16]byte(b)
	}
	return id
}
