package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	version = 1       // of the file's form
	maxFile = 8 << 20 // bytes
)

// document is the form of the file. Later versions of the program may add fields.
type document struct {
	Version int     `json:"version"`
	Tokens  []entry `json:"tokens"`
}

type entry struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	User    string     `json:"user,omitempty"`
	Role    Role       `json:"role"`
	Hash    string     `json:"sha256"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

// usesOf returns where it is kept when the tokens of a file were used.
func usesOf(path string) string { return filepath.Join(filepath.Dir(path), UsesFile) }

func encode(tokens map[string]Token) []byte {
	doc := document{Version: version, Tokens: []entry{}}
	for _, t := range sorted(tokens) {
		e := entry{t.ID, t.Name, t.User, t.Role, hex.EncodeToString(t.hash[:]), t.Created, nil}
		if !t.Expires.IsZero() {
			e.Expires = &t.Expires
		}
		doc.Tokens = append(doc.Tokens, e)
	}
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic(err) // times of a year beyond 9999 are refused by validate
	}
	return append(text, '\n')
}

func decode(data []byte) (map[string]Token, error) {
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, errors.New("it is damaged")
	}
	if doc.Version != version {
		return nil, fmt.Errorf("it is of version %d, this program knows %d", doc.Version, version)
	}
	tokens := map[string]Token{}
	for _, e := range doc.Tokens {
		hash, err := hex.DecodeString(e.Hash)
		if _, twice := tokens[e.ID]; err != nil || len(hash) != sha256.Size || e.ID == "" || twice {
			return nil, errors.New("it is damaged")
		}
		t := Token{
			ID: e.ID, Name: e.Name, User: e.User, Role: e.Role, Created: e.Created, hash: [sha256.Size]byte(hash),
		}
		if e.Expires != nil {
			t.Expires = *e.Expires
		}
		tokens[e.ID] = t
	}
	return tokens, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return data, err
}
