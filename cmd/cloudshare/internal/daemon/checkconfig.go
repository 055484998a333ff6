package daemon

import (
	"io"
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// showConfig prints what a broker would run with, and where each value is from.
func showConfig(a *cli.App, s config.Settings) error {
	keys := s.Shown()
	for i := range keys {
		keys[i].Source = s.Sources[keys[i].Key]
	}
	var known []string
	for _, f := range config.Fields() {
		known = append(known, f.Variable())
	}
	for _, name := range s.Strangers {
		a.Note("%s is no key and is ignored; did you mean %s?", name, config.Nearest(name, known))
	}
	return a.Show(keys, func(w io.Writer) {
		cli.Row(w, "KEY", "VALUE", "SOURCE")
		for _, k := range keys {
			v := k.Value
			if list, ok := v.([]string); ok {
				v = strings.Join(list, ",")
			}
			cli.Row(w, k.Key, v, k.Source)
		}
	})
}
