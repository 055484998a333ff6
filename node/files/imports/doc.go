// Package imports fetches files of tasks that stand behind URLs into the site's store (step 1 of a job's way): from the
// hosts and buckets that the configuration names, by https, and from no address that only this machine or its network
// reaches. It knows neither HTTP requests to the broker nor jobs.
//
//	m := imports.New(imports.Config{Hosts: []string{"data.example.org"}, Store: s, ...})
//	state, err := m.Import(user, "https://data.example.org/ref.fa", hash) // begins, or says how far it is
package imports

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// Errors of this package.
var (
	// ErrRefused reports a URL that is not fetched, or whose bytes are not what was asked for.
	ErrRefused = errors.New("the URL is not fetched")
	// ErrFailed reports a fetch that did not come to its end; asking again later begins a new one.
	ErrFailed = errors.New("the URL could not be fetched")
	// ErrClosed reports that the broker stops.
	ErrClosed = errors.New("imports are closed")
)

// Store is where the bytes go.
type Store interface {
	// Put keeps what r has, to its end, for a user.
	Put(ctx context.Context, user string, r io.Reader, limit int64) (files.Blob, error)
	// Find returns a user's blob if it is there, and has it stay for a day.
	Find(user string, h files.Hash) (files.Blob, bool)
}

// Config of Imports; zero bounds take the defaults.
type Config struct {
	Store Store
	// Hosts may be asked: HOST, HOST:PORT, or *.DOMAIN for the names below one. None: nothing is fetched.
	Hosts []string
	// Buckets are where objects may be fetched from (s3://BUCKET or s3://BUCKET/PREFIX), and S3 is where they are.
	Buckets []files.Object
	S3      S3
	// Private lets hosts, and that of S3, have addresses that only this machine or its network reaches.
	Private bool
	// Proxy has requests go by the proxy that the environment names; its addresses are not checked then.
	Proxy bool
	// Roots vouch for hosts; nil: the system's authorities.
	Roots *x509.CertPool
	// MaxBytes is how many a file may have; 0: files.MaxFile.
	MaxBytes int64
	// Within is how long a fetch may take, 0: 12 h. Stall is in what time it must bring leastBytes, 0: a minute.
	Within, Stall time.Duration
	// AtOnce is how many go on at a time, AtOnceEach of one user; 0: 8 and 4.
	AtOnce, AtOnceEach int
}

const (
	// leastBytes must come within Config.Stall.
	leastBytes = 64 << 10
	// remembered is for how long an outcome is told; failures less long, since asking again is to try again.
	remembered       = time.Hour
	failedRemembered = 10 * time.Second
	// maxRemembered bounds what is remembered of one user.
	maxRemembered = 1000
	// maxRedirects are followed, each checked as the first URL is.
	maxRedirects = 5
	// MaxURL is how many bytes a URL may have.
	MaxURL = 2048
)

func (c Config) withDefaults() Config {
	if c.MaxBytes == 0 {
		c.MaxBytes = files.MaxFile
	}
	if c.Within == 0 {
		c.Within = 12 * time.Hour
	}
	if c.Stall == 0 {
		c.Stall = time.Minute
	}
	if c.AtOnce == 0 {
		c.AtOnce, c.AtOnceEach = 8, 4
	}
	return c
}
