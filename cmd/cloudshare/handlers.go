package main

import (
	"errors"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/executor/kube"
	"github.com/cloudshare/cloudshare/executor/local"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// openHandlers opens what runs tasks here; on an error nothing stays open.
func openHandlers(cfg Config, federation uuid.UUID, kept *outputs.Store, log zerolog.Logger) (out []executor.Handler, err error) {
	for _, kind := range []struct {
		wanted bool
		open   func() (executor.Handler, error)
	}{
		{cfg.Commands, func() (executor.Handler, error) {
			c := cfg.local()
			c.Logger, c.Outputs = log, kept
			return local.Open(c)
		}},
		{cfg.Container.Engine != "", func() (executor.Handler, error) {
			c := cfg.container(federation.String())
			c.Logger, c.Outputs = log, kept
			return container.Open(c)
		}},
		{cfg.Kube.Cluster != "", func() (executor.Handler, error) {
			c := cfg.kube(federation.String())
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

// local is what the handler of bare commands is told.
func (c Config) local() local.Config {
	return local.Config{Keeping: c.keeping("local"), Cores: c.localCores(), MemMiB: c.MemoryMiB(), Pin: c.Pin}
}

// keeping is what each handler is told of its attempts; it has a folder of its own.
func (c Config) keeping(folder string) books.Keeping {
	return books.Keeping{
		Dir: filepath.Join(c.DataDir, folder), Site: c.Site, Grace: c.timing().Grace, MaxLogBytes: sizeOf(c.TaskLogs.Each),
	}
}

func closeHandlers(handlers []executor.Handler) error {
	var errs []error
	for _, h := range handlers {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
