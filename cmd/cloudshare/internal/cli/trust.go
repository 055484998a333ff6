package cli

import (
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

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

// trustIn returns what flag, environment and context say about a broker; a token's own pin counts before that of a
// context. Flag and environment are for the broker at --addr alone.
func (a *App) trustIn(addr string, pin *access.Pin) (trust, error) {
	if addr == a.Addr {
		if a.CAFile != "" {
			return trust{caFile: a.CAFile}, nil
		}
		if file := a.getenv(CAVariable); file != "" {
			return trust{caFile: file}, nil
		}
	}
	known, _, err := a.Contexts().of(addr)
	if err != nil {
		return trust{}, err
	}
	t := trust{caFile: known.CAFile, pin: pin}
	if known.Pin != "" && pin == nil {
		if t.pin, err = parsePin(known.Pin); err != nil {
			return t, fmt.Errorf("context of %s: %w", addr, err)
		}
	}
	return t, nil
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

// secured returns an address as it is asked: one without a scheme means https if the broker is known to speak it, and a
// token with a pin goes nowhere in plain.
func (t trust) secured(addr string) (string, error) {
	switch scheme, _, given := strings.Cut(addr, "://"); {
	case !given && (t.pin != nil || t.caFile != ""):
		return "https://" + addr, nil
	case scheme == "http" && t.pin != nil:
		return "", Usage("the token is for a broker that speaks HTTPS, and is not sent to %s in plain: use https:// in its address", addr)
	}
	return addr, nil
}
