package cli

import (
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/node/access"
)

// CAVariable names a file with the certificates of authorities for the broker at --addr.
const CAVariable = "CLOUDSHARE_CA_FILE"

// trust is by what a broker of HTTPS is trusted: authorities that somebody has named, else a pin, else the system's
// authorities.
type trust struct {
	caFile string
	pin    *access.Pin
}

// trustAt returns what flag, environment and context say about a broker; a token's own pin counts before that of a
// context. The pin stays beside authorities: a token that has one is for HTTPS, whoever vouches for the broker.
func (a *App) trustAt(b broker, pin *access.Pin) (trust, error) {
	known, _, err := a.Contexts().of(b.at)
	if err != nil {
		return trust{}, err
	}
	t := trust{caFile: known.CAFile, pin: pin}
	if file := a.caFile(); b.here && file != "" {
		t.caFile = file
	}
	if known.Pin != "" && pin == nil {
		if t.pin, err = parsePin(known.Pin); err != nil {
			return t, fmt.Errorf("context of %s: %w", b.at, err)
		}
	}
	return t, nil
}

// caFile is what flag and environment name for the broker at --addr.
func (a *App) caFile() string {
	if a.CAFile != "" {
		return a.CAFile
	}
	return a.getenv(CAVariable)
}

func parsePin(text string) (*access.Pin, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(access.Pin{}) {
		return nil, fmt.Errorf("pin %.80q: it must be the SHA-256 of the broker's key, as 64 hexadecimal digits", text)
	}
	return (*access.Pin)(b), nil
}

// options are those of a client that trusts so.
func (t trust) options() ([]client.Option, error) {
	switch {
	case t.caFile != "":
		pool, err := readCAs(t.caFile)
		return []client.Option{client.WithCAs(pool)}, err
	case t.pin != nil:
		return []client.Option{client.WithPin(*t.pin)}, nil
	}
	return nil, nil
}

func readCAs(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Usage("read the authorities' certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, Usage("read the authorities' certificates: %s holds none in PEM: name a file of -----BEGIN CERTIFICATE-----", path)
	}
	return pool, nil
}

// check refuses plain HTTP where something names by what HTTPS is trusted there, also on loopback.
func (t trust) check(b broker) error {
	switch {
	case b.scheme() != "http":
		return nil
	case t.pin != nil:
		return Usage("the token or context is for a broker that speaks HTTPS, and nothing is sent to %s in plain: use https:// in its address", b.at)
	case t.caFile != "":
		return Usage("%s is plain HTTP, but %s names authorities to trust: use https:// in its address, or drop --ca-file and %s",
			b.at, t.caFile, CAVariable)
	}
	return nil
}
