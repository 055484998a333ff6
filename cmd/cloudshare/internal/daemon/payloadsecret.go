package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/identity/armor"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/wholefile"
)

// secretPrefix begins the text of the file with the secret that a site's jobs are sealed with.
const secretPrefix = "csj_"

// keepSecret keeps a copy of the journal's secret in a file, for backups: a journal that is new, because the old one is
// gone with its disk, takes the secret of the file.
func keepSecret(dir string, j *record.Journal) error {
	path := filepath.Join(dir, config.SecretFile)
	kept, err := readSecret(path)
	if errors.Is(err, os.ErrNotExist) {
		secret, secretErr := j.Secret()
		if secretErr != nil {
			return secretErr
		}
		text := armor.Encode(secretPrefix, secret[:]) + "\n"
		if err = wholefile.Replace(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("keep the secret that jobs are sealed with: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	secret, err := j.SecretOr(kept)
	if err == nil && secret != kept {
		err = fmt.Errorf("%s is another secret than the one that this site's jobs were sealed with: move it away, and the "+
			"next start writes the right one; it belongs to an older or to another data_dir", path)
	}
	return err
}

// readSecret reads the secret of a file that nobody but its owner may read.
func readSecret(path string) (secret [32]byte, err error) {
	st, err := os.Lstat(path)
	if err != nil {
		return secret, err
	}
	if err = wholefile.CheckSecret(path, st, "read what this site's jobs run"); err != nil {
		return secret, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return secret, fmt.Errorf("read the secret that jobs are sealed with: %w", err)
	}
	b, err := armor.Decode(secretPrefix, string(text))
	if err == nil && len(b) != len(secret) {
		err = errors.New("it is too short, or too long")
	}
	if err != nil {
		return secret, fmt.Errorf("%s: %w: restore it from a backup, or move it away: where the journal is whole the next "+
			"start writes it again", path, err)
	}
	return [32]byte(b), nil
}
