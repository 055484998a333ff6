package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api"
)

// TestRates: defaults are the API's; what is no rate is refused by its name; 0 is no bound.
func TestRates(t *testing.T) {
	flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	AddFlags(flags)
	load := func(environ ...string) (Config, error) {
		return Load("", flags, func() []string { return append(environ, "CLOUDSHARE_SITE=site-1") })
	}
	c, err := load()
	if err != nil || api.Rates(c.Rates) != api.DefaultRates {
		t.Fatalf("%+v, %v", c.Rates, err)
	}
	if c, err = load("CLOUDSHARE_RATES_USER=0", "CLOUDSHARE_RATES_ANONYMOUS=5"); err != nil ||
		api.Rates(c.Rates) != (api.Rates{WrongTokens: 10, Anonymous: 5, Connections: 200}) {
		t.Errorf("%+v, %v", c.Rates, err)
	}
	for _, bad := range []string{"RATES_USER=-1", "RATES_ANONYMOUS=1000001", "RATES_WRONG_TOKENS=-5", "RATES_CONNECTIONS=-1"} {
		key := strings.ToLower(strings.TrimPrefix(strings.Split(bad, "=")[0], "RATES_"))
		if _, err = load("CLOUDSHARE_" + bad); err == nil || !strings.Contains(err.Error(), "rates."+key) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
