package config

import (
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/notices"
)

// NotifyConfig says who may be told that jobs of this site have ended.
type NotifyConfig struct {
	To      []string      `koanf:"to" doc:"hosts that jobs may have told of their end (https): HOST, HOST:PORT or *.DOMAIN; none = jobs with notify are refused"`
	Private bool          `koanf:"private" doc:"those hosts may have addresses that only this machine or its network reaches"`
	Secret  string        `koanf:"secret" doc:"of which the keys are made that notices are signed with, 24 bytes at least: in the file the text, anywhere @FILE that holds it, which only the broker can read" secret:"true"`
	GiveUp  time.Duration `koanf:"give_up" doc:"how long after a job's end its notices are tried; from 1m to 168h"`
}

func defaultNotify() NotifyConfig { return NotifyConfig{To: []string{}, GiveUp: 24 * time.Hour} }

// mostGiveUp bounds for how long something is tried.
const mostGiveUp = 7 * 24 * time.Hour

// checkNotify checks what is said of notices; the secret's file is read when the broker starts.
func (c Config) checkNotify() error {
	n := c.Notify
	if n.GiveUp < time.Minute || n.GiveUp > mostGiveUp {
		return cli.Usage("notify.give_up %s: must be from 1m to %.0fh", n.GiveUp, mostGiveUp.Hours())
	}
	for _, host := range n.To {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return cli.Usage("notify.to %q: write HOST, HOST:PORT or *.DOMAIN", host)
		}
	}
	if len(n.To) > 0 && n.Secret == "" {
		return cli.Usage("notify.secret is missing: notify.to names hosts, and what they are told is signed: " +
			"make one by openssl rand -base64 32")
	}
	if !strings.HasPrefix(n.Secret, "@") && n.Secret != "" && len(n.Secret) < notices.MinSecret {
		return cli.Usage("notify.secret: must have %d bytes at least: make one by openssl rand -base64 32", notices.MinSecret)
	}
	return nil
}

// ForNotices returns what is told of notices, with the secret that a file holds.
func (c Config) ForNotices() (notices.Config, error) {
	secret, err := readKey("notify.secret", c.Notify.Secret)
	if err != nil {
		return notices.Config{}, err
	}
	out := notices.Config{
		Hosts: c.Notify.To, Private: c.Notify.Private, Secret: []byte(secret), GiveUp: c.Notify.GiveUp,
	}
	if err = out.Validate(); err != nil {
		return notices.Config{}, cli.Usage("notify.secret: %w", err)
	}
	return out, nil
}
