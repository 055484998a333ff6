package config

import (
	"maps"
	"runtime"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node"
)

// HandlersConfig has the terms of each kind of handler.
type HandlersConfig struct {
	Local     TermsConfig `koanf:"local"`
	Container TermsConfig `koanf:"container"`
	Kube      TermsConfig `koanf:"kube"`
}

// TermsConfig is what is said of one handler's machines, and how far they are filled.
type TermsConfig struct {
	Labels []string `koanf:"labels" doc:"KEY=VALUE that jobs may select this handler's machines by; they win over those in labels"`
	Tasks  int      `koanf:"tasks" doc:"tasks at once on this handler's machines together; 0 = as many as fit"`
}

func defaultHandlers() HandlersConfig {
	none := TermsConfig{Labels: []string{}}
	return HandlersConfig{Local: none, Container: none, Kube: none}
}

// checkTerms checks labels and tasks.
func (c Config) checkTerms() error {
	if _, err := node.ParseLabels(c.Labels); err != nil {
		return cli.Usage("labels: %w", err)
	}
	for _, h := range c.handlerTerms() {
		if _, err := node.ParseLabels(h.Labels); err != nil {
			return cli.Usage("handlers.%s.labels: %w", h.name, err)
		}
		if err := c.termsOf(h).Validate(); err != nil {
			return cli.Usage("handlers.%s: %w", h.name, err)
		}
	}
	return nil
}

// namedTerms are a handler's.
type namedTerms struct {
	TermsConfig
	name string // of the handler
	here bool   // its tasks run on the broker's own machine
}

func (c Config) handlerTerms() []namedTerms {
	return []namedTerms{{c.Handlers.Local, "local", true}, {c.Handlers.Container, "container", true}, {c.Handlers.Kube, "kube", false}}
}

// termsOf returns what the broker is told of a handler.
func (c Config) termsOf(h namedTerms) node.Terms {
	labels := map[string]string{}
	if h.here {
		labels["os"], labels["arch"] = runtime.GOOS, runtime.GOARCH
	}
	for _, pairs := range [...][]string{c.Labels, h.Labels} {
		more, _ := node.ParseLabels(pairs) // checkTerms has seen it
		maps.Copy(labels, more)
	}
	return node.Terms{Labels: labels, Tasks: int64(h.Tasks)}
}

// Terms of all handlers, by their names.
func (c Config) Terms() map[string]node.Terms {
	all := map[string]node.Terms{}
	for _, h := range c.handlerTerms() {
		all[h.name] = c.termsOf(h)
	}
	return all
}
