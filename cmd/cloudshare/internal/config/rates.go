package config

import "github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"

// RatesConfig is how much may be asked of the API in a second.
type RatesConfig struct {
	WrongTokens int `koanf:"wrong_tokens" doc:"wrong tokens a second of one address that are looked at; 0 = all"`
	Anonymous   int `koanf:"anonymous" doc:"requests a second of one address without a valid token, but for /livez and /readyz; 0 = any number"`
	User        int `koanf:"user" doc:"requests a second of one user, or of a token without user; the operator's are not bounded; 0 = any number"`
	Connections int `koanf:"connections" doc:"connections a second that one address may open, but on loopback; 0 = any number"`
}

// defaultRates are those of package api, as a test sees to.
func defaultRates() RatesConfig {
	return RatesConfig{WrongTokens: 10, Anonymous: 1000, User: 2000, Connections: 200}
}

// maxRate is beyond what a broker can answer.
const maxRate = 1_000_000

// checkRates checks how much may be asked.
func (c Config) checkRates() error {
	for key, n := range map[string]int{
		"wrong_tokens": c.Rates.WrongTokens, "anonymous": c.Rates.Anonymous, "user": c.Rates.User,
		"connections": c.Rates.Connections,
	} {
		if n < 0 || n > maxRate {
			return cli.Usage("rates.%s %d: must be from 0 (no bound) to %d a second", key, n, maxRate)
		}
	}
	return nil
}
