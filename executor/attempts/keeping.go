package attempts

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor/outputs"
)

// Keeping is the part of a handler's configuration that is about its attempts: whose site
// they run at, where their files are, and how much is kept. The zero value of a field
// means its default.
type Keeping struct {
	Dir  string // absolute or relative, made if missing; one broker at a time
	Site string
	// Grace is the time between TERM and KILL; 0 = 1 s.
	Grace time.Duration
	// MaxLogBytes bounds each of stdout and stderr of an attempt; 0 = 64 MiB.
	MaxLogBytes int64
	Retention   Retention
	// Outputs is where the output of ended attempts goes; nil = a store of the
	// handler's own below Dir, bounded by Retention.
	Outputs *outputs.Store
	// Logger hears what the site should mend. The zero value is silent.
	Logger zerolog.Logger
}

// Validate names the first thing that cannot work.
func (k Keeping) Validate() error {
	switch {
	case k.Dir == "":
		return errors.New("dir is empty: name a directory for attempts")
	case k.Site == "":
		return errors.New("site is empty")
	case k.Grace < 0:
		return fmt.Errorf("grace is %s: it cannot be negative", k.Grace)
	case k.MaxLogBytes < 0:
		return fmt.Errorf("max log bytes is %d: it cannot be negative", k.MaxLogBytes)
	case k.Retention.Age < 0 || k.Retention.Bytes < 0:
		return errors.New("retention cannot be negative")
	}
	return nil
}

// WithDefaults fills in the zero fields.
func (k Keeping) WithDefaults() (Keeping, error) {
	dir, err := filepath.Abs(k.Dir)
	if err != nil {
		return k, fmt.Errorf("find %s: %w", k.Dir, err)
	}
	k.Dir = dir
	k.Grace = cmp.Or(k.Grace, time.Second)
	k.MaxLogBytes = cmp.Or(k.MaxLogBytes, 64<<20)
	k.Retention = k.Retention.WithDefaults()
	return k, nil
}
