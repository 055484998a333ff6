package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/files"
)

const shownNowhere = "sEcReT/kEy"

// withBucket may fetch from one.
func withBucket() Config {
	c := Default()
	c.Site = "site-1"
	c.Data.FetchFrom = []string{"data.example.org", "s3://data", "s3://other/public/"}
	c.Data.S3.Endpoint, c.Data.S3.Region = "https://s3.example.org", "eu-1"
	return c
}

// TestFetchOfABroker: hosts and buckets of one list, keys by text or file.
func TestFetchOfABroker(t *testing.T) {
	c := withBucket()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(shownNowhere+"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	c.Data.S3.AccessKey, c.Data.S3.SecretKey, c.Data.S3.PathStyle = "AKID", "@"+secret, false
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := c.ForImports()
	if err != nil || len(got.Hosts) != 1 || got.Hosts[0] != "data.example.org" || len(got.Buckets) != 2 ||
		got.Buckets[1] != (files.Object{Bucket: "other", Key: "public"}) || got.Private {
		t.Errorf("%+v %v", got, err)
	}
	if s := got.S3; s.Endpoint != "https://s3.example.org" || s.Region != "eu-1" || s.AccessKey != "AKID" ||
		s.SecretKey != shownNowhere || !s.HostStyle || s.Plain {
		t.Errorf("%+v", s)
	}
	c.Data.Own, c.Data.S3.SecretKey = "0", "@"+secret+".gone"
	if got, err := c.ForImports(); err != nil || len(got.Buckets)+len(got.Hosts) != 0 ||
		got.S3.Endpoint+got.S3.SecretKey != "" {
		t.Errorf("without files: %+v %v", got, err)
	}
	c = Default()
	c.Site = "site-1"
	if got, err := c.ForImports(); err != nil || got.S3.HostStyle || got.S3.Endpoint != "" ||
		len(got.Buckets)+len(got.Hosts) != 0 {
		t.Errorf("by default: %+v %v", got, err)
	}
}

// TestFetchIsChecked: each key by its name, and no secret in what is said.
func TestFetchIsChecked(t *testing.T) {
	for want, change := range map[string]func(*DataConfig){
		`data.fetch_from "https://x": write HOST`:             func(d *DataConfig) { d.FetchFrom = []string{"https://x"} },
		`data.fetch_from "s3://": not the name`:               func(d *DataConfig) { d.FetchFrom = []string{"s3://"} },
		`data.fetch_from "s3://Data": not`:                    func(d *DataConfig) { d.FetchFrom = []string{"s3://Data"} },
		`data.fetch_from "s3://data/..": not`:                 func(d *DataConfig) { d.FetchFrom = []string{"s3://data/.."} },
		"data.s3.endpoint is missing: data.fetch_from":        func(d *DataConfig) { d.S3 = S3Config{PathStyle: true} },
		"data.s3.endpoint is missing: write":                  func(d *DataConfig) { d.S3.Endpoint = "" },
		"data.s3.endpoint must be https://":                   func(d *DataConfig) { d.S3.Endpoint = "s3.example.org" },
		"data.s3.endpoint is plain HTTP":                      func(d *DataConfig) { d.S3.Endpoint = "http://10.0.0.1:9000" },
		"data.s3.access_key and secret_key go together":       func(d *DataConfig) { d.S3.SecretKey = shownNowhere },
		"data.s3.region, access_key and secret_key must be":   func(d *DataConfig) { d.S3.AccessKey, d.S3.SecretKey = "a b", shownNowhere },
		"data.s3.region, access_key and secret_key must be o": func(d *DataConfig) { d.S3.Region = "eu\n1" },
	} {
		c := withBucket()
		change(&c.Data)
		err := c.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), want) || cli.CodeOf(err) != cli.ExitUsage ||
			strings.Contains(err.Error(), shownNowhere) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestKeyFilesAreChecked: a key that others can read is none.
func TestKeyFilesAreChecked(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"open": shownNowhere, "empty": " \n", "long": strings.Repeat("x", maxKeyFile+1), "two": shownNowhere + "\n" + shownNowhere,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o604); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"open": "chmod 600", "empty": "is empty", "long": "one line", "two": "printable", "none": "no such file", ".": "one line",
	} {
		c := withBucket()
		c.Data.S3.AccessKey, c.Data.S3.SecretKey = "AKID", "@"+filepath.Join(dir, name)
		if name == "." {
			_ = os.Chmod(dir, 0o700)
			c.Data.S3.SecretKey = "@" + dir
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := c.ForImports()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), shownNowhere) ||
			cli.CodeOf(err) != cli.ExitUsage {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestKeysAreNotShown by config show, and not taken from the command line.
func TestKeysAreNotShown(t *testing.T) {
	c := withBucket()
	c.Data.S3.AccessKey, c.Data.S3.SecretKey = shownNowhere, shownNowhere
	text, err := json.Marshal(c.Shown())
	if err != nil || strings.Contains(string(text), shownNowhere) || strings.Count(string(text), redacted) != 2 {
		t.Errorf("%s %v", text, err)
	}
	for text, refused := range map[string]bool{shownNowhere: true, "@/f": false, "": false} {
		flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
		AddFlags(flags)
		args := []string{"--site=a", "--data-s3-endpoint=https://s3.example.org", "--data-s3-access-key=a", "--data-s3-secret-key=" + text}
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		_, err := Load("", flags, func() []string { return nil })
		got := err != nil && strings.Contains(err.Error(), "command line")
		if got != refused || err != nil && strings.Contains(err.Error(), shownNowhere) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
