package truststore

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/wholefile"
)

// Errors of a roster's file.
var (
	// ErrDamaged reports a file that no broker has written.
	ErrDamaged = errors.New("the saved roster is damaged")
	// ErrForeign reports a file of another federation.
	ErrForeign = errors.New("the saved roster is of another federation")
)

// maxFile bounds the bytes that are read: some 200 a member.
const maxFile = 8 << 20

// saved is the file's form.
type saved struct {
	Version    int     `json:"version"`
	Federation string  `json:"federation"`
	Index      uint64  `json:"index"`
	Members    []Entry `json:"members"`
}

// load reads a file; one that is missing holds nothing.
func load(path string) (Roster, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Roster{}, nil
	}
	if err != nil {
		return Roster{}, fmt.Errorf("read the saved roster: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return Roster{}, fmt.Errorf("read the saved roster: %w", err)
	}
	r, err := Parse(data)
	if err != nil {
		return r, fmt.Errorf("%w (%s): move it away, and join again by an invitation, or take it from another member's data",
			err, path)
	}
	return r, nil
}

// Parse reads what Encode has written.
func Parse(data []byte) (Roster, error) {
	var s saved
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Roster{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	id, err := hex.DecodeString(s.Federation)
	if err != nil || len(id) != 16 || s.Version != 1 {
		return Roster{}, fmt.Errorf("%w: version %d, federation %.40q", ErrDamaged, s.Version, s.Federation)
	}
	r := Roster{Federation: [16]byte(id), Index: s.Index, Members: s.Members}
	keys, sites := map[identity.Public]bool{}, map[string]bool{}
	for _, m := range r.Members {
		if !command.ValidSite(m.Site) || sites[m.Site] || keys[m.Key] {
			return Roster{}, fmt.Errorf("%w: member %.80q", ErrDamaged, m.Site)
		}
		keys[m.Key], sites[m.Site] = true, true
	}
	return r, nil
}

// Encode returns the text of a roster.
func Encode(r Roster) ([]byte, error) {
	s := saved{Version: 1, Federation: hex.EncodeToString(r.Federation[:]), Index: r.Index, Members: r.Members}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the roster: %w", err)
	}
	return append(b, '\n'), nil
}

// save writes a file so that a crash leaves the old or the new one.
func save(path string, r Roster) error {
	b, err := Encode(r)
	if err != nil {
		return err
	}
	if err = wholefile.Replace(path, b, 0o600); err != nil {
		return fmt.Errorf("keep the roster: %w", err)
	}
	return nil
}
