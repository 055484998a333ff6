//go:build mutate

package relay

import (
	"os"
	"slices"
	"strings"
)

// ignoresMeant: this process takes connections that mean another site.
var ignoresMeant = slices.Contains(strings.Split(os.Getenv("CLOUDSHARE_MUTATE"), ","), "no-meant-site")
