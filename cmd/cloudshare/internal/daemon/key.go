package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/record"
)

// identify returns the key of a data directory, which is made at the first start: its hash is the node id. joined says
// that the directory is a member's already.
func identify(ctx context.Context, cfg config.Config, j *record.Journal, joined bool, log zerolog.Logger) (
	key identity.Key, err error,
) {
	settled, err := settleKey(ctx, cfg, log)
	if err != nil {
		return key, err
	}
	path := filepath.Join(cfg.DataDir, config.KeyFile)
	key, err = identity.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		if joined {
			return key, fmt.Errorf("%w: %s is missing: restore it from a backup; data that an older version wrote "+
				"have none, and no version reads both: found or join again on an empty data_dir", identity.ErrKeyFile, path)
		}
		if key, err = makeKey(path); err == nil {
			log.Debug().Stringer("key", key.Public()).Str("file", path).
				Msg("made this site's key: whoever can read the file is this site")
		}
	}
	if err == nil && settled {
		err = j.Succeed(cfg.Site, key.Public().Node())
	}
	if err != nil {
		return key, err
	}
	return key, j.Identify(cfg.Site, key.Public().Node(), joined)
}

// makeKey makes the key of a directory that has none.
func makeKey(path string) (identity.Key, error) {
	key := identity.Generate()
	if err := key.Save(path); err != nil {
		return identity.Key{}, err
	}
	return key, nil
}
