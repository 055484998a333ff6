package daemon

import (
	"crypto/tls"
	"encoding/hex"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/certificate"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/access"
)

// clientTLS is how the API speaks to clients; its zero value is plain HTTP.
type clientTLS struct {
	cfg     *tls.Config
	vouched bool        // by an authority
	pin     *access.Pin // of a certificate for which nobody vouches
}

// openClientTLS returns how the configuration has the API speak to clients.
func openClientTLS(cfg config.Config, log zerolog.Logger) (clientTLS, error) {
	switch {
	case cfg.HTTPTLSCert != "":
		files, err := certificate.OpenFiles(cfg.HTTPTLSCert, cfg.HTTPTLSKey, log)
		if err != nil {
			return clientTLS{}, err
		}
		return clientTLS{cfg: certificate.Config(files.Get), vouched: true}, nil
	case cfg.HTTPTLSSelfMade:
		own, err := certificate.OpenSelfMade(cfg.DataDir, cfg.Site, cfg.HTTPHosts())
		if err != nil {
			return clientTLS{}, err
		}
		log.Info().Str("sha256", hex.EncodeToString(own.Pin[:])).
			Msg("the API speaks HTTPS with a certificate of its own: tokens that are made from now on name its key")
		return clientTLS{cfg: certificate.Config(own.Get), pin: &own.Pin}, nil
	case cfg.Insecure:
		log.Debug().Msg("the API speaks plain HTTP")
	}
	return clientTLS{}, nil
}
