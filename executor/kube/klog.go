package kube

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/rs/zerolog"
	"k8s.io/klog/v2"
)

// CaptureLogs has what client-go says of itself written by log, at level debug:
// what matters of it this handler says itself. It counts for the whole process,
// so the program calls it, once.
func CaptureLogs(log zerolog.Logger) {
	klog.SetLogger(logr.New(sink{log.With().Str("from", "client-go").Logger()}))
}

// sink writes what Kubernetes' libraries log.
type sink struct{ log zerolog.Logger }

var _ logr.LogSink = sink{}

// Init implements logr.LogSink.
func (s sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s sink) Enabled(level int) bool { return level <= 1 && s.log.GetLevel() <= zerolog.DebugLevel }

// Info implements logr.LogSink.
func (s sink) Info(_ int, msg string, kv ...any) { s.with(kv).write(msg, nil) }

// Error implements logr.LogSink.
func (s sink) Error(err error, msg string, kv ...any) { s.with(kv).write(msg, err) }

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink {
	return sink{s.log.With().Str("part", name).Logger()}
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(kv ...any) logr.LogSink { return s.with(kv) }

func (s sink) write(msg string, err error) { s.log.Debug().Err(err).Msg(msg) }

func (s sink) with(kv []any) sink {
	c := s.log.With()
	for i := 0; i+1 < len(kv); i += 2 {
		c = c.Str(fmt.Sprint(kv[i]), fmt.Sprint(kv[i+1]))
	}
	return sink{c.Logger()}
}
