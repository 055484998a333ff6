package certificate

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// lookEvery is the least time between two looks at the files.
const lookEvery = time.Second

// Files is a certificate and its key in two files. Handshakes look whether the files have changed, so a renewed pair
// counts without a restart. All methods may be called from any goroutine.
type Files struct {
	cert, key string
	log       zerolog.Logger
	now       func() time.Time

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu. Invariant: a whole pair
	seen    [2]stamp         // the files of current; guarded by mu
	due     time.Time        // of the next look; guarded by mu
	told    string           // why the files do not count, "" = they do; guarded by mu
}

// stamp tells versions of a file apart.
type stamp struct {
	info os.FileInfo
	size int64
	at   time.Time
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info, info.Size(), info.ModTime()}, nil
}

func (s stamp) equals(other stamp) bool {
	return s.size == other.size && s.at.Equal(other.at) && os.SameFile(s.info, other.info)
}

// OpenFiles reads the pair. The error says what is wrong with which file. A pair that has expired is taken, and told: a
// broker that did not start for it would be missing to its federation, while only clients would have refused it.
func OpenFiles(cert, key string, log zerolog.Logger) (*Files, error) {
	return openFiles(cert, key, log, time.Now)
}

func openFiles(cert, key string, log zerolog.Logger, now func() time.Time) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log, now: now}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.load()
	if err == nil && f.now().After(f.current.Leaf.NotAfter) {
		log.Error().Str("file", cert).Time("until", f.current.Leaf.NotAfter).
			Msg("certificate of the API has expired: clients will refuse it; renew the files, no restart is needed")
	}
	return f, err
}

// Get is a GetCertificate of package tls. A pair that cannot be read leaves the one before.
func (f *Files) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); !now.Before(f.due) {
		f.due = now.Add(lookEvery)
		f.look()
	}
	return f.current, nil
}

// look takes over a new pair, and says once why one does not count. REQUIRES: f.mu held.
func (f *Files) look() {
	changed, err := f.load()
	switch {
	case err != nil && err.Error() != f.told:
		f.told = err.Error()
		f.log.Warn().Err(err).Time("until", f.current.Leaf.NotAfter).
			Msg("new certificate of the API not taken: the one before stays; repair the files")
	case err == nil && (changed || f.told != ""):
		f.told = ""
		f.log.Info().Str("file", f.cert).Strs("names", f.current.Leaf.DNSNames).Time("until", f.current.Leaf.NotAfter).
			Msg("certificate of the API taken from its files")
	}
}

// warnExposed says that any user of the machine may read the key. A group's right is none of that: it is how a program
// that renews certificates shares them. REQUIRES: f.mu held.
func (f *Files) warnExposed() {
	if mode := f.seen[1].info.Mode().Perm(); mode&0o007 != 0 {
		f.log.Warn().Str("file", f.key).Str("mode", fmt.Sprintf("%04o", mode)).
			Msg("key of the API's certificate is open to all users of this machine: chmod o= it; whoever has read it can pass for this broker")
	}
}

// load reads the pair if it has changed. The files are looked at before they are read: a change in between shows at the
// next look. REQUIRES: f.mu held.
func (f *Files) load() (changed bool, err error) {
	var seen [2]stamp
	for i, path := range []string{f.cert, f.key} {
		if seen[i], err = stampOf(path); err != nil {
			return false, fmt.Errorf("read the API's certificate: %w", err)
		}
	}
	if f.current != nil && seen[0].equals(f.seen[0]) && seen[1].equals(f.seen[1]) {
		return false, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err == nil && f.current != nil && f.now().After(pair.Leaf.NotAfter) {
		err = fmt.Errorf("it has expired at %s", pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	if err != nil {
		return false, fmt.Errorf("read the API's certificate %s and key %s: %w", f.cert, f.key,
			fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "tls: ")))
	}
	f.current, f.seen = &pair, seen
	f.warnExposed()
	return true, nil
}
