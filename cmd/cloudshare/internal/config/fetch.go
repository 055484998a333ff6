package config

import (
	"os"
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/imports"
)

// S3Config is of the object store in which the buckets of data.fetch_from are.
type S3Config struct {
	Endpoint  string `koanf:"endpoint" doc:"https://HOST[:PORT] of the object store (S3) in which the buckets of data.fetch_from are; empty = none"`
	Region    string `koanf:"region" doc:"of those buckets; empty = us-east-1, which stores of one region mostly take"`
	AccessKey string `koanf:"access_key" doc:"as which this broker asks for their objects: its text, or @FILE that holds it; empty = as nobody, for public buckets" secret:"true"`
	SecretKey string `koanf:"secret_key" doc:"its secret: in the file the text, anywhere @FILE that holds it, which only the broker can read" secret:"true"`
	PathStyle bool   `koanf:"path_style" doc:"a bucket stands in the path (HOST/BUCKET/KEY); false = before the host's name (BUCKET.HOST/KEY)"`
	Insecure  bool   `koanf:"insecure" doc:"endpoint may be http://: on a network you trust, for anybody between can read and change what is fetched"`
}

// maxKeyFile is how many bytes a file with a key may have.
const maxKeyFile = 1024

// checkFetch checks what is said of files behind URLs.
func (c Config) checkFetch() error {
	_, buckets, err := c.Data.allowed()
	if err != nil {
		return err
	}
	s3 := c.Data.S3.forImports()
	for _, key := range []*string{&s3.AccessKey, &s3.SecretKey} {
		if strings.HasPrefix(*key, "@") {
			*key = "file" // it is read when the broker starts
		}
	}
	if err = s3.Validate(); err != nil {
		return cli.Usage("data.s3.%w", err)
	}
	if len(buckets) > 0 && s3.Endpoint == "" {
		return cli.Usage("data.s3.endpoint is missing: data.fetch_from names buckets, so say where they are: https://HOST[:PORT]")
	}
	return nil
}

// allowed returns the hosts and the buckets of fetch_from.
func (d DataConfig) allowed() (hosts []string, buckets []files.Object, err error) {
	for _, text := range d.FetchFrom {
		scheme, _, isURL := strings.Cut(text, "://")
		switch {
		case strings.HasPrefix(text, files.ObjectScheme):
			o, err := files.ParseObjects(text)
			if err != nil {
				return nil, nil, cli.Usage("data.fetch_from %q: %w", text, err)
			}
			buckets = append(buckets, o)
		case isURL:
			return nil, nil, cli.Usage("data.fetch_from %q: write HOST, without %s://, or s3://BUCKET", text, scheme)
		default:
			hosts = append(hosts, text)
		}
	}
	return hosts, buckets, nil
}

func (s S3Config) forImports() imports.S3 {
	return imports.S3{
		Endpoint: s.Endpoint, Plain: s.Insecure, Region: s.Region,
		AccessKey: s.AccessKey, SecretKey: s.SecretKey, HostStyle: !s.PathStyle,
	}
}

// ForImports returns what is told of files behind URLs, with the keys that files hold: nothing if no files travel with
// tasks here.
func (c Config) ForImports() (imports.Config, error) {
	if _, some := c.ForFiles(); !some {
		return imports.Config{}, nil
	}
	hosts, buckets, err := c.Data.allowed()
	if err != nil {
		return imports.Config{}, err
	}
	out := imports.Config{Hosts: hosts, Buckets: buckets, Private: c.Data.FetchPrivate, S3: c.Data.S3.forImports()}
	if out.S3.AccessKey, err = readKey("data.s3.access_key", c.Data.S3.AccessKey); err != nil {
		return imports.Config{}, err
	}
	if out.S3.SecretKey, err = readKey("data.s3.secret_key", c.Data.S3.SecretKey); err != nil {
		return imports.Config{}, err
	}
	if err = out.S3.Validate(); err != nil {
		return imports.Config{}, cli.Usage("data.s3.%w", err)
	}
	return out, nil
}

// readKey returns a key, or what its file holds.
func readKey(name, text string) (string, error) {
	path, inFile := strings.CutPrefix(text, "@")
	if !inFile {
		return text, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", cli.Usage("%s: %w: write the key into a file that only the broker can read", name, err)
	case info.Mode().Perm()&0o007 != 0: // a Secret of Kubernetes is its group's
		return "", cli.Usage("%s %s: others can read or write it: chmod 600 %s", name, path, path)
	case !info.Mode().IsRegular() || info.Size() > maxKeyFile:
		return "", cli.Usage("%s %s: must be a file of one line, the key", name, path)
	}
	content, err := os.ReadFile(path)
	key := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		return "", cli.Usage("%s: %w", name, err)
	case key == "":
		return "", cli.Usage("%s %s: is empty: write the key into it", name, path)
	}
	return key, nil
}

// checkCommandLine refuses a secret that everybody on this machine can read in the list of processes.
func (s Settings) checkCommandLine() error {
	for key, text := range map[string]string{
		"data.s3.secret_key": s.Data.S3.SecretKey, "notify.secret": s.Notify.Secret,
	} {
		if s.Sources[key] == "flag" && text != "" && !strings.HasPrefix(text, "@") {
			return cli.Usage("%s: others see it on the command line: write it into the configuration file, or give @FILE", key)
		}
	}
	return nil
}
