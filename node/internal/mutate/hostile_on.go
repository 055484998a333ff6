//go:build mutate

package mutate

import (
	"os"
	"slices"
	"strconv"
	"strings"
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

// Did tells the test how many times this process has done what a name means: in the file FILE.NAME.
func Did(name string, times int) {
	_ = os.WriteFile(hostileFile+"."+name, []byte(strconv.Itoa(times)), 0o600)
}
