package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// deployed reads a configuration as `broker` would.
func deployed(t *testing.T, path string, args, environ []string) config.Config {
	t.Helper()
	flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	s, err := config.LoadSettings(path, flags, func() []string { return environ })
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Strangers) > 0 {
		t.Errorf("variables that are no keys: %v", s.Strangers)
	}
	return s.Config
}

// invites checks the service that writes another one's invitation, and returns that one's name.
func invites(t *testing.T, name string, service map[string]any) string {
	t.Helper()
	site := strings.TrimPrefix(name, "invite-")
	args := fmt.Sprint(service["command"])
	if args != "[invite "+site+" --if-needed --out /run/cloudshare/invitation]" ||
		service["network_mode"] != "service:a" || service["ports"] != nil {
		t.Errorf("%s: %s, in network %v", name, args, service["network_mode"])
	}
	if !strings.Contains(fmt.Sprint(service["volumes"]), "/a:/run/a:ro ") {
		t.Errorf("%s does not see the operator's token, or may change it: %v", name, service["volumes"])
	}
	return site
}

// TestDeployFiles: what deploy hands to a broker is a valid configuration, says visibly where plain HTTP leaves the
// loopback, has no secret in it, and can be repeated.
func TestDeployFiles(t *testing.T) {
	if c := deployed(t, "../../deploy/systemd/broker.yaml", nil, nil); !c.IfEmpty || !c.Bootstrap || c.Insecure {
		t.Errorf("systemd: %+v", c)
	}
	text, err := os.ReadFile("../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	founders, invited := 0, map[string]bool{}
	services, _ := m["services"].(map[string]any)
	for name, v := range services {
		service, _ := v.(map[string]any)
		if strings.HasPrefix(name, "invite-") {
			invited[invites(t, name, service)] = true
			continue
		}
		var args, environ []string
		for _, a := range service["command"].([]any) {
			args = append(args, fmt.Sprint(a))
		}
		env, _ := service["environment"].(map[string]any)
		for k, v := range env {
			environ = append(environ, k+"="+fmt.Sprint(v))
		}
		c := deployed(t, "", args[1:], environ)
		if args[0] != "broker" || c.Site != name || !c.Insecure || !c.IfEmpty || c.Commands || c.Container.Engine == "" {
			t.Errorf("%s: %v gives %+v", name, args, c)
		}
		mounted := fmt.Sprint(service["volumes"])
		if !strings.Contains(mounted, c.DataDir+":"+c.DataDir) {
			t.Errorf("%s: the engine does not see %s under the same path: %s", name, c.DataDir, mounted)
		}
		if c.Bootstrap {
			founders++
		} else if c.Join != "@/run/cloudshare/invitation" || !strings.Contains(mounted, "/invitations/"+name+":/run/cloudshare:ro") {
			t.Errorf("%s joins by %s, with %s", name, c.Join, mounted)
		}
	}
	if founders != 1 || len(services) != 5 || !invited["b"] || !invited["c"] {
		t.Errorf("%d founders among %d services, and %v are invited", founders, len(services), invited)
	}
}
