package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// issue returns an authority's certificate in a file, and one of its own for this machine.
func issue(t *testing.T) (authority string, own tls.Certificate) {
	t.Helper()
	made := func(cert, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
		cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, cert, by, key.Public(), byKey)
		must(t, err)
		return der
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER := made(ca, ca, caKey, caKey)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := made(leaf, ca, key, caKey)
	authority = filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), 0o644))
	return authority, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serving is a host with a certificate.
func serving(t *testing.T, cert tls.Certificate, serve http.HandlerFunc) (host *httptest.Server, port string) {
	t.Helper()
	host = httptest.NewUnstartedServer(serve)
	host.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	host.StartTLS()
	t.Cleanup(host.Close)
	_, port, err := net.SplitHostPort(host.Listener.Addr().String())
	must(t, err)
	return host, port
}

// library serves a genome, and ways that lead elsewhere.
func library(elsewhere string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/genome":
			fmt.Fprint(w, "acgt")
		case "/moved":
			http.Redirect(w, r, "/genome", http.StatusFound)
		case "/elsewhere":
			http.Redirect(w, r, elsewhere+"/genome", http.StatusFound)
		case "/private":
			http.Redirect(w, r, "https://169.254.169.254/latest", http.StatusFound)
		case "/plain":
			http.Redirect(w, r, "http://"+r.Host+"/genome", http.StatusFound)
		case "/endless":
			for piece := make([]byte, 1<<20); ; {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		default:
			http.NotFound(w, r)
		}
	}
}

// importedFrom asks a broker for a URL until that has come to its end.
func importedFrom(t *testing.T, s *testbed.Site, url, sha256 string) (answer string, err error) {
	t.Helper()
	body := fmt.Appendf(nil, `{"url":%q,"sha256":%q}`, url, sha256)
	if sha256 == "" {
		body = fmt.Appendf(nil, `{"url":%q}`, url)
	}
	await(t, "the end of "+url, func() error {
		var b []byte
		b, _, err = s.Do(t.Context(), http.MethodPost, "/v1/imports", http.Header{"Content-Type": {"application/json"}}, body)
		if answer = string(b); err == nil && !strings.Contains(answer, "sha256") {
			return errors.New(answer)
		}
		return nil
	})
	return answer, err
}

// TestImportsByHTTPS: a broker fetches for a job what its user names by a URL, from a host whose authority its machine
// knows; it goes nowhere else, and keeps nothing of what is not what was asked for.
func TestImportsByHTTPS(t *testing.T) {
	t.Parallel()
	authority, cert := issue(t)
	elsewhere, _ := serving(t, cert, library(""))
	host, port := serving(t, cert, library(elsewhere.URL))
	unknown := httptest.NewTLSServer(library(""))
	t.Cleanup(unknown.Close)
	fed := start(t, 1, 1, "SSL_CERT_FILE="+authority, "CLOUDSHARE_DATA_OWN=64Mi", "CLOUDSHARE_DATA_FETCH_PRIVATE=true",
		"CLOUDSHARE_DATA_FETCH_FROM=127.0.0.1:"+port+","+strings.TrimPrefix(unknown.URL, "https://"))
	at := fed.Sites[0]
	right := files.HashOf([]byte("acgt")).String()
	for _, path := range []string{"/genome", "/moved"} {
		if got, err := importedFrom(t, at, host.URL+path, right); err != nil || !strings.Contains(got, right) {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	for url, why := range map[string]string{
		elsewhere.URL + "/genome":              "data.fetch_from",
		host.URL + "/elsewhere":                "data.fetch_from",
		host.URL + "/private":                  "data.fetch_from",
		host.URL + "/plain":                    "only https and s3 are fetched",
		"http://127.0.0.1:" + port + "/genome": "only https and s3 are fetched",
		"https://u:p@127.0.0.1:" + port + "/":  "credentials",
		unknown.URL + "/genome":                "signed by unknown authority",
		host.URL + "/none":                     "404",
		host.URL + "/endless":                  "storage",
		host.URL + "/genome?wrong":             "not the " + strings.Repeat("5", 64),
	} {
		hash := ""
		if strings.HasSuffix(url, "?wrong") {
			hash = strings.Repeat("5", 64)
		}
		if got, err := importedFrom(t, at, url, hash); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %s, %v; want %q", url, got, err, why)
		}
	}
	user := sweep{dir: t.TempDir()}
	out := user.cli(t, at, "run", "--input-url", host.URL+"/moved:ref/genome.txt", "--", "/bin/cat", "ref/genome.txt")
	if string(out) != "acgt" {
		t.Errorf("its task prints %q", out)
	}
	for url, why := range map[string]string{
		host.URL + "/elsewhere":                "data.fetch_from",
		unknown.URL + "/genome":                "unknown authority",
		"http://127.0.0.1:" + port + "/genome": "brokers fetch https and s3 alone",
	} {
		if said := user.refusedCLI(t, at, "submit", "--input-url", url+":x", "--", "/bin/true"); !strings.Contains(said, why) {
			t.Errorf("--input-url %s: %s", url, said)
		}
	}
	if kept := blobsOf(t, at); len(kept) != 1 || !strings.HasSuffix(kept[0], right) {
		t.Errorf("it keeps %q", kept)
	}
}

// TestImportsAskNoPrivateAddress: a host that is allowed and whose name means an address of this machine is not asked,
// unless the operator says so.
func TestImportsAskNoPrivateAddress(t *testing.T) {
	t.Parallel()
	authority, cert := issue(t)
	asked := make(chan string, 100)
	_, port := serving(t, cert, func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path })
	fed := start(t, 1, 1, "SSL_CERT_FILE="+authority, "CLOUDSHARE_DATA_FETCH_FROM=localhost:"+port+",127.0.0.1:"+port)
	for _, name := range []string{"localhost:", "127.0.0.1:"} {
		got, err := importedFrom(t, fed.Sites[0], "https://"+name+port+"/genome", "")
		if err == nil || !strings.Contains(err.Error(), "data.fetch_private") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("it was asked for %s", <-asked)
	}
}

// refusedCLI runs the command, which has to fail, and returns what it says.
func (s *sweep) refusedCLI(t *testing.T, at *testbed.Site, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cloudshare, args...)
	cmd.Env, cmd.Dir = append(append(os.Environ(), at.Env()...), "CLOUDSHARE_ADDR="+at.URL.String()), s.dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("cloudshare %s ended well: %s", strings.Join(args, " "), out)
	}
	return string(out)
}

// blobsOf returns the files that a site's store has, of all spaces, whole and in part.
func blobsOf(t *testing.T, s *testbed.Site) (names []string) {
	t.Helper()
	root := filepath.Join(s.Dir, "data", "data")
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has gone meanwhile
		}
		if err == nil && d.Type().IsRegular() && filepath.Dir(path) != root {
			names = append(names, strings.TrimPrefix(path, root+"/"))
		}
		return err
	}))
	return names
}
