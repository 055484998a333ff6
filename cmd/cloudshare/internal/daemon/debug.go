package daemon

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// maxBundlePart bounds one file of a bundle, in bytes.
const maxBundlePart = 32 << 20

// DebugCommand returns `debug`.
func DebugCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "debug", Short: "Look into a broker", Args: cobra.NoArgs, Example: "  cloudshare debug bundle --data-dir /var/lib/cloudshare",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(bundleCommand(a))
	return cmd
}

func bundleCommand(a *cli.App) *cobra.Command {
	var dataDir, file string
	cmd := &cobra.Command{
		Use: "bundle", Short: "Collect what a bug report needs into one file", Args: cobra.NoArgs,
		Long: `Collect what a bug report needs into one tar.gz: status, sites, queue, ledger,
policy and metrics from the broker at --addr; its configuration, last log lines,
goroutines and heap from the socket in its --data-dir (on its machine, as its
user). Jobs are left out, and what looks like a secret is replaced; look into it
before you send it all the same. What could not be had is listed in errors.txt.`,
		Example: `  cloudshare debug bundle --data-dir /var/lib/cloudshare
  cloudshare debug bundle --addr http://127.0.0.1:7701 --data-dir /tmp/fed/site-2/data --file site-2.tar.gz`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				file = "cloudshare-debug-" + time.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
			}
			return saveBundle(cmd.Context(), a, dataDir, file)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "the broker's data directory (default: omit what is there)")
	cmd.Flags().StringVar(&file, "file", "", "where to write it; - is stdout (default cloudshare-debug-DATE.tar.gz)")
	return cmd
}

// bundlePart is one file of a bundle.
type bundlePart struct {
	name string
	ask  func(ctx context.Context) (*http.Response, error)
	raw  bool // a profile: there is no text to look for secrets in
}

// bundleParts in the order of the file.
func bundleParts(a *cli.App, dataDir string) (parts []bundlePart) {
	for _, p := range [...][2]string{
		{"status.json", "/v1/status?hash=false"},
		{"sites.json", "/v1/sites"},
		{"queue.json", "/v1/queue"},
		{"ledger.json", "/v1/ledger"},
		{"policy.json", "/v1/policy"},
		{"livez.json", "/livez"},
		{"readyz.json", "/readyz"},
		{"metrics.txt", "/metrics"},
	} {
		parts = append(parts, bundlePart{name: p[0], ask: func(ctx context.Context) (*http.Response, error) {
			return askBroker(ctx, a, p[1])
		}})
	}
	for _, p := range [...][2]string{
		{"config.json", "/debug/config"},
		{"log.ndjson", "/debug/logs"},
		{"goroutines.txt", "/debug/pprof/goroutine?debug=2"},
		{"heap.pprof", "/debug/pprof/heap"},
	} {
		parts = append(parts, bundlePart{
			name: p[0], raw: strings.HasSuffix(p[0], ".pprof"),
			ask: func(ctx context.Context) (*http.Response, error) {
				if dataDir == "" {
					return nil, errNoDataDir
				}
				return askSocket(ctx, dataDir, p[1])
			},
		})
	}
	return parts
}

// askBroker asks the API of the broker at --addr.
func askBroker(ctx context.Context, a *cli.App, path string) (*http.Response, error) {
	c, err := a.ClientOf(a.Addr)
	if err != nil {
		return nil, err
	}
	path, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, path, values)
}

func saveBundle(ctx context.Context, a *cli.App, dataDir, file string) (err error) {
	out := a.Out
	if file != "-" {
		f, cause := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if cause != nil {
			return fmt.Errorf("write bundle: %w", cause)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	had, missing, err := writeBundle(ctx, a, dataDir, out)
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if had == 0 {
		return fmt.Errorf("%w: nothing could be had, see errors.txt: is a broker at %s?", errNothingHad, a.Addr)
	}
	hint := ""
	if missing > 0 {
		hint = ": its errors.txt says why"
	}
	a.Note("%s: %d parts, %d could not be had%s", file, had, missing, hint)
	return nil
}

var (
	errNothingHad = errors.New("empty bundle")
	errNoDataDir  = errors.New("give --data-dir, on the broker's machine")
)

func writeBundle(ctx context.Context, a *cli.App, dataDir string, out io.Writer) (had, missing int, err error) {
	zipped := gzip.NewWriter(out)
	files := tar.NewWriter(zipped)
	add := func(name string, content []byte) {
		header := &tar.Header{Name: "cloudshare-debug/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: time.Now()}
		if err = errors.Join(err, files.WriteHeader(header)); err == nil {
			_, err = files.Write(content)
		}
	}
	add("version.txt", []byte(versions(a.Version)))
	var faults strings.Builder
	for _, p := range bundleParts(a, dataDir) {
		content, cause := p.get(ctx)
		if cause != nil {
			missing++
			fmt.Fprintf(&faults, "%s: %s\n", p.name, redact([]byte(cause.Error())))
			continue
		}
		had++
		add(p.name, content)
	}
	add("errors.txt", []byte(faults.String()))
	return had, missing, errors.Join(err, files.Close(), zipped.Close())
}

func (p *bundlePart) get(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	res, err := p.ask(ctx)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxBundlePart))
	if err != nil || p.raw {
		return content, err
	}
	return redact(content), nil // a refusal says something, too
}

// versions returns the program's and those of what it is made of.
func versions(own string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cloudshare %s\n%s %s/%s\n", own, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			fmt.Fprintf(&b, "%s %s\n", m.Path, m.Version)
		}
	}
	return b.String()
}

// secrets are what a bundle must not show, wherever it stands; the first group
// stays.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|auth[_-]?token|join[_-]?token|credentials?)\\?["']?\s*[:=]\s*)(?:\\"[^"\\]*\\"|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',;&}\\]+)`),
	regexp.MustCompile(`(?i)((?:authorization|cookie)\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic)\s+)?)[^\s"',}\\]+`),
	regexp.MustCompile(`(?i)(bearer\s+)[a-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://[^\s/:@"]*:)[^\s/@"]+@`),
	regexp.MustCompile(`(?i)(cs[tir]_)[a-z2-7_]{8,}`), // tokens, invitations, recovery keys
	regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?-----END [A-Z ]*PRIVATE KEY-----`),
}

// redact replaces what looks like a secret.
func redact(text []byte) []byte {
	for i, s := range secrets {
		with := "${1}[redacted]"
		if i == 3 {
			with += "@"
		}
		text = s.ReplaceAll(text, []byte(with))
	}
	return bytes.ToValidUTF8(text, []byte("?"))
}
