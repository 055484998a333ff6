package access

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tokens whose names make the file larger than a start reads are refused: the broker did not start any more.
func TestTheFileStaysReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), TokensFile)
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	one := Token{
		Name: strings.Repeat("<", maxName), User: strings.Repeat("u", maxUser), Role: ReadOnly,
		Created: time.Unix(1, 1).UTC(), Expires: time.Now().Add(time.Hour),
	}
	for n := range MaxTokens - 1 {
		one.ID = fmt.Sprintf("id%06d", n)
		s.tokens[one.ID] = one
		if n%1000 == 0 && len(encode(s.tokens)) > maxFile {
			delete(s.tokens, one.ID)
			break
		}
	}
	if _, _, err = s.Create(one); !errors.Is(err, ErrFull) {
		t.Errorf("%d tokens of %d bytes: %v", len(s.tokens), len(encode(s.tokens)), err)
	}
	clear(s.tokens)
	if _, _, err = s.Create(one); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(path); err != nil || len(again.List()) != 1 {
		t.Errorf("%v", err)
	}
}
