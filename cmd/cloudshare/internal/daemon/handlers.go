package daemon

import (
	"errors"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/executor/kube"
	"github.com/cloudshare/cloudshare/executor/local"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// openHandlers opens what runs tasks here; on an error nothing stays open.
func openHandlers(cfg config.Config, federation uuid.UUID, kept *outputs.Store,
	log zerolog.Logger,
) (out []executor.Handler, err error) {
	for _, kind := range []struct {
		wanted bool
		open   func() (executor.Handler, error)
	}{
		{cfg.Commands, func() (executor.Handler, error) {
			c := cfg.ForLocal()
			c.Logger, c.Outputs = log, kept
			return local.Open(c)
		}},
		{cfg.Container.Engine != "", func() (executor.Handler, error) {
			c := cfg.ForContainer(federation.String())
			c.Logger, c.Outputs = log, kept
			return container.Open(c)
		}},
		{cfg.Kube.Cluster != "", func() (executor.Handler, error) {
			c := cfg.ForKube(federation.String())
			c.Logger, c.Outputs = log, kept
			kube.CaptureLogs(log)
			if c.Watchdog != (kube.Watchdog{}) {
				return kube.OpenWatched(c)
			}
			return kube.Open(c)
		}},
	} {
		if !kind.wanted {
			continue
		}
		h, err := kind.open()
		if err != nil {
			return nil, errors.Join(err, closeHandlers(out))
		}
		out = append(out, h)
	}
	return out, nil
}

// forewarnHandlers tells those that want to know that the broker begins to stop.
func forewarnHandlers(handlers []executor.Handler) {
	for _, h := range handlers {
		if f, ok := h.(executor.Forewarned); ok {
			f.BrokerStops()
		}
	}
}

func closeHandlers(handlers []executor.Handler) error {
	var errs []error
	for _, h := range handlers {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
