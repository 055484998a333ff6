package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Errors of this package.
var (
	// ErrHash reports a text that is no hash.
	ErrHash = errors.New("no SHA-256: 64 digits of 0-9a-f are one")
	// ErrSize reports a number of bytes that no file has.
	ErrSize = errors.New("size is out of bounds")
	// ErrPath reports a path that a file of a task cannot have.
	ErrPath = errors.New("path of a file is refused")
	// ErrOverlap reports a path that is there twice, or is a file and a folder.
	ErrOverlap = errors.New("paths overlap")
	// ErrManifest reports bytes that are no manifest, or not its canonical form.
	ErrManifest = errors.New("no manifest of files")
	// ErrTooMany reports a directory with more than a manifest may have.
	ErrTooMany = errors.New("too many files for a manifest")
)

// Hash is the SHA-256 of a blob's bytes. Its text is what sha256sum prints: 64 lower-case digits.
type Hash [sha256.Size]byte

// HashOf returns the hash of content.
func HashOf(content []byte) Hash { return sha256.Sum256(content) }

// ParseHash returns the hash of a text, or ErrHash. Upper case is refused: a hash has one text.
func ParseHash(text string) (h Hash, err error) { return h, h.UnmarshalText([]byte(text)) }

// String returns the hash as text.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the hash as text, in JSON, too.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText returns; anything else is ErrHash.
func (h *Hash) UnmarshalText(text []byte) error {
	var parsed Hash
	if len(text) == hex.EncodedLen(len(h)) && bytes.IndexFunc(text, isUpper) < 0 {
		if _, err := hex.Decode(parsed[:], text); err == nil {
			*h = parsed
			return nil
		}
	}
	return fmt.Errorf("%.80q is %w", text, ErrHash)
}

func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }

// Blob names bytes: their hash, and how many there are.
type Blob struct {
	Hash Hash  `json:"sha256"`
	Size int64 `json:"size"`
}

// BlobOf returns the name of content.
func BlobOf(content []byte) Blob { return Blob{Hash: HashOf(content), Size: int64(len(content))} }

// Check returns ErrSize if no blob has that size.
func (b Blob) Check() error {
	if b.Size < 0 || b.Size > MaxFile {
		return fmt.Errorf("%s of %d bytes: %w: 0 to %d are a file", b.Hash, b.Size, ErrSize, int64(MaxFile))
	}
	return nil
}
