package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/node/wholefile"
)

// Files of a site's data folder.
const (
	TokensFile   = "tokens.json"      // what is kept of all tokens
	UsesFile     = "tokens-used.json" // when they were used last
	OperatorFile = "token"            // the text of the token that the first start makes
)

// OpenIn opens the tokens of a broker's data folder, which must exist. At its first start it makes the operator's
// token and writes its text into OperatorFile. That file may then be moved away: it is not made again.
func OpenIn(dataDir string) (*Store, error) {
	s, err := Open(filepath.Join(dataDir, TokensFile))
	if err != nil || s.made {
		return s, err
	}
	// The text comes first: after a crash between the two there would be a token that nobody has.
	id, text := newText()
	if err = WriteText(filepath.Join(dataDir, OperatorFile), text); err != nil {
		return nil, err
	}
	if _, err = s.adopt(text, Token{ID: id, Name: "operator", Role: Operator}); err != nil {
		return nil, err
	}
	s.made = true
	return s, nil
}

// PinIn has the texts of new tokens carry a pin, and that in the OperatorFile of a data folder as well, if it is there;
// nil: none of them.
func (s *Store) PinIn(dataDir string, pin *Pin) error {
	s.mu.Lock()
	s.pin = pin
	s.mu.Unlock()
	path := filepath.Join(dataDir, OperatorFile)
	old, err := ReadText(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNoToken) || errors.Is(err, ErrMistyped) {
		return nil // its owner has moved it away
	}
	if err != nil {
		return err
	}
	text, err := WithPin(old, pin)
	if err != nil || text == old {
		return err
	}
	return WriteText(path, text)
}

// WriteText writes the text of a token into a file that only its owner may read.
func WriteText(path, text string) error {
	if err := wholefile.Replace(path, []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the API's token: %w", err)
	}
	return nil
}

// ReadText reads the text of a token from a file, without the line's end.
func ReadText(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the API's token: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if _, _, err = parse(text); err != nil {
		return "", fmt.Errorf("read the API's token: %s: %w", path, err)
	}
	return text, nil
}
