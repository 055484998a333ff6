// Package payloadkey reads and writes the file with the secrets that a site's jobs are sealed with: the one of now
// first, then those of before that some job still needs. It must never import a broker's parts but the journal's
// records.
package payloadkey

import (
	"crypto/rand"
	"fmt"
	"os"

	"github.com/cloudshare/cloudshare/node/identity/armor"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/wholefile"
)

// prefix begins the text of the file.
const prefix = "csj_"

// MaxKept bounds the secrets at which another replacement waits: jobs need them all.
const MaxKept = 4

// Read returns the secrets of a file that nobody but its owner may read. Errors: os.ErrNotExist, or what is wrong with
// it and what to do.
func Read(path string) (list [][32]byte, err error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err = wholefile.CheckSecret(path, st, "read what this site's jobs run"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the secret that jobs are sealed with: %w", err)
	}
	b, err := armor.Decode(prefix, string(text))
	if err == nil {
		list, err = record.SplitSecrets(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: restore it from a backup, or move it away: where the journal is whole the next "+
			"start writes it again", path, err)
	}
	return list, nil
}

// Write has a file hold secrets, for its owner alone; what it holds already is not written again.
func Write(path string, list [][32]byte) error {
	if is, err := Read(path); err == nil && string(record.JoinSecrets(is)) == string(record.JoinSecrets(list)) {
		return nil
	}
	text := armor.Encode(prefix, record.JoinSecrets(list)) + "\n"
	if err := wholefile.Replace(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("keep the secret that jobs are sealed with: %w", err)
	}
	return nil
}

// Next writes a new secret to a file.
func Next(path string) error {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return Write(path, [][32]byte{secret})
}
