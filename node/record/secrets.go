package record

import (
	"crypto/rand"
	"errors"
	"fmt"
)

// MaxSecrets bounds the secrets of a site: the one that seals, and those of before that some payload still needs.
const MaxSecrets = 8

// keySecret is where the secrets stand with which this site seals its jobs, in a row: the one of now first.
var keySecret = []byte("payload-secret")

// Secrets returns the secrets with which this site seals its jobs, and has sealed some that are left: the one of now
// first. The first start makes one: it stands beside the jobs, so neither is there without the other.
func (j *Journal) Secrets() ([][32]byte, error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return j.SecretsOr([][32]byte{secret})
}

// SecretsOr is Secrets, but the first start takes those that are given.
func (j *Journal) SecretsOr(first [][32]byte) ([][32]byte, error) {
	v, err := j.Get(BucketMeta, keySecret)
	if err == nil && v == nil {
		return first, j.SetSecrets(first)
	}
	var list [][32]byte
	if err == nil {
		list, err = SplitSecrets(v)
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret that jobs are sealed with: %w", err)
	}
	return list, nil
}

// SetSecrets replaces them.
func (j *Journal) SetSecrets(list [][32]byte) error {
	if err := j.Commit([]Write{Put(BucketMeta, keySecret, JoinSecrets(list))}); err != nil {
		return fmt.Errorf("keep the secret that jobs are sealed with: %w", err)
	}
	return nil
}

// JoinSecrets returns secrets in a row.
func JoinSecrets(list [][32]byte) (b []byte) {
	for i := range list {
		b = append(b, list[i][:]...)
	}
	return b
}

var errSecrets = errors.New("it is damaged: too short, or too long")

// SplitSecrets returns the secrets of a row.
func SplitSecrets(b []byte) (list [][32]byte, err error) {
	if n := len(b); n == 0 || n%32 != 0 || n/32 > MaxSecrets {
		return nil, errSecrets
	}
	for len(b) > 0 {
		list, b = append(list, [32]byte(b)), b[32:]
	}
	return list, nil
}
