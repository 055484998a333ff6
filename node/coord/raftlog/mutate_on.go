//go:build mutate

package raftlog

import (
	"os"
	"slices"
	"strings"
)

// noDialBack: this process, when it leads, proposes any address that it is told.
var noDialBack = slices.Contains(strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ","), "no-dial-back")
