package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/cloudshare/cloudshare/executor/kube"
)

// secrets are the files and folders that are the broker's own, by absolute paths: no task
// in a sandbox may see one, wherever the operator has put it.
func (c Config) secrets() []string {
	named := []string{
		"/etc/cloudshare", c.DataDir, c.file, c.ZKAuth, c.ZKTLSKey, c.HTTPTLSKey,
		strings.TrimPrefix(c.Container.Engine, "unix://"), // whoever reaches it is root
	}
	for _, text := range []string{c.Join, c.Data.S3.AccessKey, c.Data.S3.SecretKey, c.Notify.Secret} {
		if file, ok := strings.CutPrefix(text, "@"); ok {
			named = append(named, file)
		}
	}
	if c.Kube.Cluster != "" && c.Kube.Cluster != kube.InCluster {
		named = append(named, c.Kube.Cluster)
		named = append(named, kubeSecrets(c.Kube.Cluster)...)
	}
	var out []string
	for _, path := range named {
		if path == "" {
			continue
		}
		if whole, err := filepath.Abs(path); err == nil {
			out = append(out, whole)
		}
	}
	return out
}

// kubeSecrets returns the files that a kubeconfig names and that are not for everybody;
// none if it cannot be read: the handler says so.
func kubeSecrets(kubeconfig string) (out []string) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil
	}
	content, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		return nil
	}
	users, _ := content["users"].([]any)
	for _, each := range users {
		named, _ := each.(map[string]any)
		user, _ := named["user"].(map[string]any)
		for _, key := range []string{"client-key", "tokenFile"} {
			path, _ := user[key].(string)
			if path != "" && !filepath.IsAbs(path) { // as kubectl reads it
				path = filepath.Join(filepath.Dir(kubeconfig), path)
			}
			out = append(out, path)
		}
	}
	return out
}
