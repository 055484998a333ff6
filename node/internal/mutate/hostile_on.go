//go:build mutate

package mutate

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// hostileFile, if not "", says who plays a hostile leader now, and how. It is read again at each look, so that a test
// has one federation for all of it. It is a variable of its own since `cloudshare dev` gives brokers no others of its
// prefix.
//
//	SITE NAME[,NAME…] [VICTIM]
var hostileFile = os.Getenv("HOSTILE_LEADER")

// Hostile reports whether a site, as the leader, does what a name means, and to whom; "" = to all others.
func Hostile(site, name string) (victim string, on bool) {
	if hostileFile == "" {
		return "", false
	}
	text, err := os.ReadFile(hostileFile)
	said := strings.Fields(string(text))
	if err != nil || len(said) < 2 || said[0] != site || !slices.Contains(strings.Split(said[1], ","), name) {
		return "", false
	}
	if len(said) > 2 {
		victim = said[2]
	}
	return victim, true
}

// Means reports whether what is done to a victim is done to a site.
func Means(victim, site string) bool { return victim == "" || victim == site }

var done = struct {
	sync.Mutex
	times map[string]int
}{times: map[string]int{}}

// Did tells the test how many times this process has done what a name means: in the file FILE.NAME.
func Did(name string) {
	done.Lock()
	defer done.Unlock()
	done.times[name]++
	_ = os.WriteFile(hostileFile+"."+name, []byte(strconv.Itoa(done.times[name])), 0o600)
}

// Lies are what a leader tells a member in place of what all have agreed upon. Who knows entries and states sets them,
// for those who send them.
var Lies struct {
	// Entry returns an entry as it is told a victim by a leader; false: as it is.
	Entry func(entry []byte, leader, victim string) ([]byte, bool)
	// State returns a state's snapshot as it is told by a leader.
	State func(snapshot []byte, leader string) ([]byte, error)
}
