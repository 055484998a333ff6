package compare

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// ErrDiffers says that this member's state is not that of a majority of the voters.
var ErrDiffers = errors.New("this broker's state differs from the federation's")

const (
	// noticeFile says in the folder why a member has stopped.
	noticeFile = "diverged.json"
	// evidenceTime is how long a member that stops may take to keep the states.
	evidenceTime = 30 * time.Second
	// A state of another member may be evidenceGrowth times as large as this one's
	// and evidenceSlack bytes more.
	evidenceGrowth = 4
	evidenceSlack  = 64 << 20
)

// notice is what noticeFile holds.
type notice struct {
	Site     string    `json:"site"`
	Entry    uint64    `json:"entry"` // the newest at which it was seen
	What     string    `json:"what"`  // history or state
	OwnHash  string    `json:"own_hash"`
	Hash     string    `json:"hash"` // of the majority
	Majority []string  `json:"majority"`
	At       time.Time `json:"at"`
	Message  string    `json:"message"`
}

// Refuse returns why a member whose folder of states is dir must not start: it has
// stopped, and nobody has taken the folder away since.
func Refuse(dir string) error {
	if dir == "" {
		return nil
	}
	path := filepath.Join(dir, noticeFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var n notice
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return fmt.Errorf("%w: %s cannot be read: %w: move %s away to start", ErrDiffers, path, err, dir)
	}
	return fmt.Errorf("%w: %s", ErrDiffers, n.Message)
}

// stop keeps both states, then takes this member out of the group.
func (c *Checker) stop(ctx context.Context, f Finding) {
	n := notice{
		Site: c.cfg.Site, Entry: f.Entry, What: f.What.String(), OwnHash: hex.EncodeToString(f.Own[:]),
		Hash:     hex.EncodeToString(f.Majority[:]),
		Majority: f.Agree, At: time.Now().UTC(),
	}
	n.Message = fmt.Sprintf("at entry %d its %s has hash %s, and that of %s, a majority of the voters, has %s: %s",
		f.Entry, f.What, n.OwnHash, strings.Join(f.Agree, " "), n.Hash, c.remedy())
	c.cfg.Log.Error().Uint64("entry", f.Entry).Str("own_hash", n.OwnHash).Str("hash", n.Hash).Strs("majority", f.Agree).
		Str("what", f.What.String()).
		Msg("this broker's state differs from that of a majority of the voters: it stops")
	if c.cfg.Dir != "" {
		if err := c.saveEvidence(ctx, &n); err != nil {
			c.cfg.Log.Error().Err(err).Str("dir", c.cfg.Dir).Msg("not all of the states could be kept")
		}
	}
	c.cfg.Stop(fmt.Errorf("%w: %s", ErrDiffers, n.Message))
}

// remedy says what to do.
func (c *Checker) remedy() string {
	if c.cfg.Dir == "" {
		return c.cfg.Remedy
	}
	return fmt.Sprintf("the states are kept in %s: move that folder away and report it, %s", c.cfg.Dir, c.cfg.Remedy)
}

// saveEvidence writes the notice, this member's state, and that of the first of a majority
// that gives it.
func (c *Checker) saveEvidence(ctx context.Context, n *notice) error {
	if err := os.MkdirAll(c.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	text, err := json.MarshalIndent(n, "", "  ")
	if err == nil {
		err = c.write(noticeFile, func(w io.Writer) error { return writeAll(w, append(text, '\n')) })
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	entry, state := c.cfg.Machine.Held()
	defer state.Release()
	size, cause := c.writeState(fmt.Sprintf("%d-own.snap", entry), state)
	return errors.Join(err, cause, c.fetchAny(ctx, n.Majority, size))
}

// writeState writes a state of this member, and returns its size.
func (c *Checker) writeState(name string, state coord.Snapshot) (size int64, err error) {
	err = c.write(name, func(w io.Writer) error {
		count := &counter{w: w}
		defer func() { size = count.n }()
		return state.Write(count)
	})
	return size, err
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// fetchAny keeps the state of one of the sites.
func (c *Checker) fetchAny(ctx context.Context, sites []string, size int64) error {
	errs := []error{errors.New("no other state could be had")}
	for _, m := range c.cfg.Members() {
		// its name is a file's
		if m.Site == c.cfg.Site || !slices.Contains(sites, m.Site) || !command.ValidSite(m.Site) {
			continue
		}
		err := c.fetch(ctx, m, evidenceGrowth*size+evidenceSlack)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// fetch keeps a member's state, as it comes.
func (c *Checker) fetch(ctx context.Context, m Member, limit int64) error {
	conn, err := c.question(ctx, m, []byte{questionState})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	b, err := relay.ReadFrame(conn, nil, maxHead)
	if err != nil {
		return fmt.Errorf("state of %s: %w", m.Site, err)
	}
	h, err := parseHead(b)
	if err != nil || h.site != m.Site {
		return fmt.Errorf("state of %s: answered as %.80q: %w", m.Site, h.site, errors.Join(errAnswer, err))
	}
	return c.write(fmt.Sprintf("%d-%s.snap", h.entry, m.Site), func(w io.Writer) error {
		_, err := io.Copy(w, &chunkReader{conn: conn, patience: c.cfg.Timeout, left: limit})
		return err
	})
}

func writeAll(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// write makes a file of the folder: all of it or none.
func (c *Checker) write(name string, content func(io.Writer) error) error {
	path := filepath.Join(c.cfg.Dir, name)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	err = errors.Join(content(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = relay.SyncDir(c.cfg.Dir)
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, errors.Join(err, os.Remove(path+".new")))
	}
	return nil
}
