package uploads

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// Config of Uploads; zero bounds take the defaults.
type Config struct {
	Dir string // is created
	Now func() time.Time
	// Keep is how long an upload stays that nobody writes; 0: 24 h.
	Keep time.Duration
	// Most is how many may be unfinished, and MostEach how many of one user; each takes up to files.PieceBytes here.
	// 0: 256 and 32.
	Most, MostEach int
}

// idle is how long nobody has written an upload that gives way to another one of its user.
const idle = time.Hour

// Uploads are those of all users. They are safe for concurrent use.
type Uploads struct {
	cfg  Config
	root *os.Root

	mu  sync.Mutex
	all map[key]*state // guarded by mu
}

// state is what is known of an unfinished upload. Its fields are guarded by Uploads.mu.
type state struct {
	used time.Time // when it was written last
	busy bool      // somebody has it
}

// Open reads which uploads there are below a folder. What is none there is left alone.
func Open(cfg Config) (*Uploads, error) {
	if cfg.Keep == 0 {
		cfg.Keep = 24 * time.Hour
	}
	if cfg.Most == 0 {
		cfg.Most, cfg.MostEach = 256, 32
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of uploads: %w", err)
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of uploads: %w", err)
	}
	u := &Uploads{cfg: cfg, root: root, all: map[key]*state{}}
	if err = fs.WalkDir(root.FS(), ".", u.load); err != nil {
		return nil, errors.Join(fmt.Errorf("read the folder of uploads: %w", err), root.Close())
	}
	u.Sweep()
	return u, nil
}

// Close closes the folder. Uploads that somebody has are to be released before.
func (u *Uploads) Close() error { return u.root.Close() }

// load takes up an upload that was there before.
func (u *Uploads) load(path string, d fs.DirEntry, err error) error {
	if err != nil || d.IsDir() {
		return err
	}
	k, ok := parsePath(path)
	if !ok {
		return nil
	}
	st, err := d.Info()
	if err == nil {
		u.all[k] = &state{used: st.ModTime()}
	}
	return err
}

// Sweep removes the uploads that nobody has written for too long.
func (u *Uploads) Sweep() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for k, s := range u.all {
		if !s.busy && u.cfg.Now().Sub(s.used) >= u.cfg.Keep {
			u.drop(k)
		}
	}
}

// Begin returns a user's upload of a blob, a new one or what is there of it. Errors: ErrBusy, ErrTooMany, ErrFull.
func (u *Uploads) Begin(user string, b files.Blob) (*Upload, error) {
	u.Sweep()
	u.mu.Lock()
	defer u.mu.Unlock()
	k := key{files.HashOf([]byte(user)), b}
	if u.all[k] == nil {
		if err := u.makeRoom(k.user); err != nil {
			return nil, err
		}
		u.all[k] = &state{}
	}
	return u.take(k)
}

// Resume returns an upload that was begun. Errors: ErrUnknown, ErrBusy.
func (u *Uploads) Resume(user string, b files.Blob) (*Upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := key{files.HashOf([]byte(user)), b}
	if s := u.all[k]; s == nil || !s.busy && u.cfg.Now().Sub(s.used) >= u.cfg.Keep {
		return nil, fmt.Errorf("upload of %s: %w", b.Hash, ErrUnknown)
	}
	return u.take(k)
}

// take gives an upload to one who asks. REQUIRES: u.mu held.
func (u *Uploads) take(k key) (*Upload, error) {
	s := u.all[k]
	if s.busy {
		return nil, fmt.Errorf("upload of %s: %w", k.blob.Hash, ErrBusy)
	}
	fresh := s.used.IsZero()
	f, err := u.open(k)
	if err != nil {
		if fresh {
			delete(u.all, k)
		}
		return nil, asFull(fmt.Errorf("open upload of %s: %w", k.blob.Hash, err))
	}
	s.busy, s.used = true, u.cfg.Now()
	return &Upload{of: u, key: k, f: f}, nil
}

// open opens the file of an upload. REQUIRES: u.mu held.
func (u *Uploads) open(k key) (*os.File, error) {
	err := u.root.Mkdir(k.user.String(), 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return u.root.OpenFile(k.path(), os.O_RDWR|os.O_CREATE, 0o600)
}

// makeRoom has a user's oldest idle upload give way if there are too many. REQUIRES: u.mu held.
func (u *Uploads) makeRoom(user files.Hash) error {
	own, oldest := 0, key{}
	for k, s := range u.all {
		if k.user != user {
			continue
		}
		own++
		if !s.busy && u.cfg.Now().Sub(s.used) >= idle && (oldest == key{} || s.used.Before(u.all[oldest].used)) {
			oldest = k
		}
	}
	if own < u.cfg.MostEach && len(u.all) < u.cfg.Most {
		return nil
	}
	if oldest != (key{}) {
		u.drop(oldest)
		return nil
	}
	return fmt.Errorf("%w: %d of this user, who may have %d, and %d in all, of at most %d: finish or delete some",
		ErrTooMany, own, u.cfg.MostEach, len(u.all), u.cfg.Most)
}

// drop forgets an upload; a file that the disk does not remove now is found again at the next start. REQUIRES: u.mu
// held.
func (u *Uploads) drop(k key) {
	delete(u.all, k)
	_ = u.root.Remove(k.path())
}

// path returns where an upload's file is.
func (k key) path() string {
	return k.user.String() + "/" + k.blob.Hash.String() + "-" + strconv.FormatInt(k.blob.Size, 10)
}

// parsePath returns the upload of a file, if it is one's.
func parsePath(path string) (k key, ok bool) {
	user, name, _ := strings.Cut(path, "/")
	var err error
	if k.user, err = files.ParseHash(user); err != nil {
		return k, false
	}
	k.blob, err = ParseName(name)
	return k, err == nil && k.path() == path
}

// ParseName returns the blob of a name HASH-SIZE, by which uploads are asked for. Errors: files.ErrHash,
// files.ErrSize.
func ParseName(name string) (b files.Blob, err error) {
	hash, size, _ := strings.Cut(name, "-")
	if b.Hash, err = files.ParseHash(hash); err != nil {
		return b, err
	}
	if b.Size, err = strconv.ParseInt(size, 10, 64); err != nil || strconv.FormatInt(b.Size, 10) != size {
		return b, fmt.Errorf("%w: %.40q", files.ErrSize, size)
	}
	return b, b.Check()
}

// asFull says of a full disk that it is one.
func asFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
