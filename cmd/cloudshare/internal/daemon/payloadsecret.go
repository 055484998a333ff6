package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/payloadkey"
	"github.com/cloudshare/cloudshare/node/record"
)

// keepSecret keeps a copy of the journal's secrets in a file, for backups: a journal that is new, because the old one
// is gone with its disk, takes those of the file. Then it takes the next one, if `cloudshare key rotate-payload` has
// left one. It returns all, the one of now first.
func keepSecret(dir string, j *record.Journal, log zerolog.Logger) ([][32]byte, error) {
	path := filepath.Join(dir, config.SecretFile)
	kept, err := payloadkey.Read(path)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	var list [][32]byte
	if missing {
		list, err = j.Secrets()
	} else {
		list, err = j.SecretsOr(kept)
	}
	if err != nil {
		return nil, err
	}
	merged := mergeSecrets(list, kept)
	if merged == nil {
		return nil, fmt.Errorf("%s is another secret than the one that this site's jobs were sealed with: move it away, and the "+
			"next start writes the right one; it belongs to an older or to another data_dir", path)
	}
	return takeNext(dir, j, list, merged, log)
}

// mergeSecrets returns the secrets of a journal and of its copy, nil if they have none in common. They differ where a
// crash, or a backup of one of them, came between a replacement and the copy: which has all of the other's is newer.
func mergeSecrets(journal, kept [][32]byte) [][32]byte {
	within := func(a, b [][32]byte) bool {
		return !slices.ContainsFunc(a, func(s [32]byte) bool { return !slices.Contains(b, s) })
	}
	switch {
	case within(kept, journal):
		return journal
	case within(journal, kept):
		return kept
	case !slices.ContainsFunc(kept, func(s [32]byte) bool { return slices.Contains(journal, s) }):
		return nil
	}
	out := slices.Clone(journal)
	for _, s := range kept {
		if !slices.Contains(out, s) && len(out) < record.MaxSecrets {
			out = append(out, s)
		}
	}
	return out
}

// takeNext puts the next secret in front of those that there are, if there is one. The journal has it first: what is
// sealed with it can be opened whenever it stops.
func takeNext(dir string, j *record.Journal, was, list [][32]byte, log zerolog.Logger) ([][32]byte, error) {
	path := filepath.Join(dir, config.NextSecret)
	next, err := payloadkey.Read(path)
	taken := err == nil
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case len(next) != 1:
		return nil, fmt.Errorf("%s holds %d secrets, and must hold one: remove it", path, len(next))
	case slices.Contains(list, next[0]): // a crash came before it was removed
	case len(list) >= payloadkey.MaxKept:
		log.Warn().Str("file", path).Int("secrets", len(list)).Msg("the secret that jobs are sealed with is not replaced: jobs " +
			"of this site still need all those of before; it is tried again at the next start")
		taken = false
	default:
		list = slices.Concat(next, list)
		log.Info().Int("older", len(list)-1).Msg("jobs are sealed with another secret from now on")
	}
	if !slices.Equal(was, list) {
		if err = j.SetSecrets(list); err != nil {
			return nil, err
		}
	}
	if err = payloadkey.Write(filepath.Join(dir, config.SecretFile), list); err != nil {
		return nil, err
	}
	if taken {
		return list, os.Remove(path)
	}
	return list, nil
}

// dropSecrets forgets those of a broker's secrets that are not used. The file goes last, since the journal counts.
func dropSecrets(dir string, j *record.Journal, of [][32]byte, used []bool) error {
	list, err := j.Secrets()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(list, func(s [32]byte) bool {
		n := slices.Index(of, s)
		return n > 0 && n < len(used) && !used[n]
	})
	if err = j.SetSecrets(left); err != nil {
		return err
	}
	return payloadkey.Write(filepath.Join(dir, config.SecretFile), left)
}
