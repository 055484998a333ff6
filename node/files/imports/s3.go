package imports

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/cloudshare/cloudshare/node/files"
)

// S3 says where objects are (s3://), and as whom the broker asks for them.
type S3 struct {
	// Endpoint is https://HOST[:PORT]; "": no objects are fetched. http:// needs Plain: what is fetched can then be read
	// and changed between, but the secret key cannot be read.
	Endpoint string
	Plain    bool
	// Region of the buckets; "": that of most servers, us-east-1.
	Region string
	// AccessKey and SecretKey sign what is asked; none: nothing is signed, as for public buckets.
	AccessKey, SecretKey string
	// HostStyle has a bucket's name before the host's, else it stands in the path.
	HostStyle bool
}

// Validate returns what is wrong, without asking anybody. It never holds a secret.
func (s S3) Validate() error {
	u, err := url.Parse(s.Endpoint)
	switch {
	case s.Endpoint == "" && s == S3{}:
		return nil
	case s.Endpoint == "":
		return errors.New("endpoint is missing: write https://HOST[:PORT]")
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("endpoint must be https://HOST[:PORT]")
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("endpoint must be https://HOST[:PORT] with nothing before or behind it")
	case u.Scheme == "http" && !s.Plain:
		return errors.New("endpoint is plain HTTP, which others between can read and change: " +
			"use https, or say so (insecure)")
	case (s.AccessKey == "") != (s.SecretKey == ""):
		return errors.New("access_key and secret_key go together: give both, or none for public buckets")
	}
	for _, text := range []string{s.Region, s.AccessKey, s.SecretKey} {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("region, access_key and secret_key must be of printable ASCII letters, without spaces")
		}
	}
	if _, err = s.client(nil); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	return nil
}

// isObject reports whether a text is meant to name an object.
func isObject(text string) bool { return strings.HasPrefix(text, files.ObjectScheme) }

// checkObject returns the object of a text if it may be asked for, else ErrRefused with the reason.
func (m *Imports) checkObject(text string) (files.Object, error) {
	if len(text) > MaxURL {
		return files.Object{}, refuse("it has more than %d bytes", MaxURL)
	}
	o, err := files.ParseObject(text)
	if err != nil {
		return o, refuse("%w", err)
	}
	for _, where := range m.cfg.Buckets {
		if !o.Within(where) {
			continue
		}
		if m.s3 == nil {
			return o, refuse("where its bucket is, is not configured: the site's operator says so by data.s3.endpoint")
		}
		return o, nil
	}
	return o, refuse("bucket %q is not allowed, or not for that key: the site's operator allows some by data.fetch_from",
		o.Bucket)
}
