package openid

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// maxRedirects is how many a provider's answer may take.
const maxRedirects = 10

// CheckEndpoint refuses an address of a provider over plain HTTP, but on loopback. The name is that of the address in
// the provider's description.
func CheckEndpoint(name, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return fmt.Errorf("the provider's %s %.200q: must be a URL: have the provider describe itself rightly", name, text)
	case !isSafe(u):
		return fmt.Errorf("the provider's %s %.200q: must be https, but on loopback: have the provider describe itself rightly", name, text)
	}
	return nil
}

// CheckRedirect is that of http.Client: it refuses to leave HTTPS, and plain HTTP but on loopback.
func CheckRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return errors.New("the provider redirects too often")
	case !isSafe(to.URL), to.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https":
		return errors.New("the provider redirects to plain HTTP: have it stay with https")
	}
	return nil
}

// isSafe reports whether nobody else can answer at an address.
func isSafe(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}
