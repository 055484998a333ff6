package daemon

import (
	"net"
	"path/filepath"

	"github.com/rs/zerolog"
)

// apiSocket is where the site's operator asks without a token: by the broker's own user, and root.
const apiSocket = "api.sock"

// openOperatorSocket listens on apiSocket. A socket that cannot be made is no reason not to
// start: nil, and tokens remain.
func openOperatorSocket(dataDir string, log zerolog.Logger) net.Listener {
	l, err := listenSocket(filepath.Join(dataDir, apiSocket))
	if err != nil {
		log.Warn().Err(err).Msg("no operator's socket; whoever loses all tokens removes tokens.json and starts the broker again")
		return nil
	}
	return l
}
