package daemon

import (
	"net"
	"os"

	"github.com/rs/zerolog"
)

// tellService tells the service manager that started this process what state it
// is in (systemd's Type=notify); without one it does nothing.
func tellService(log zerolog.Logger, state string) {
	path := os.Getenv("NOTIFY_SOCKET") // a leading "@" is an abstract one, for Go as for systemd
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		log.Warn().Err(err).Str("state", state).Msg("service manager not notified")
	}
}
