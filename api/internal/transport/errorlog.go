package transport

import (
	"log"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// NewErrorLog returns a logger for what net/http says by itself, such as a client's
// garbage.
func NewErrorLog(to zerolog.Logger) *log.Logger { return log.New(lineWriter{to}, "", 0) }

type lineWriter struct{ log zerolog.Logger }

func (w lineWriter) Write(p []byte) (int, error) {
	w.log.Debug().Str("from", "net/http").Msg(problem.OneLine(string(p)))
	return len(p), nil
}
