package e2e

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestAdvertise: a broker that listens everywhere tells the others a name, and
// they pass on questions to it by that name.
func TestAdvertise(t *testing.T) {
	t.Parallel()
	fed := start(t, 1, 1)
	first := fed.Sites[0]
	var flags, told []string
	for _, key := range []string{"--http", "--peer", "--gossip"} {
		addr, err := testbed.FreeAddress()
		must(t, err)
		_, port, _ := net.SplitHostPort(addr)
		flags, told = append(flags, key, "0.0.0.0:"+port), append(told, "localhost:"+port)
	}
	join(t, "named", []*testbed.Site{first}, append(flags, "--insecure", "--advertise", "localhost")...)
	await(t, "the new site is told of", func() error {
		b, _, err := first.Do(t.Context(), http.MethodGet, "/v1/sites", nil, nil)
		if i := slices.IndexFunc(told[:2], func(addr string) bool {
			return !strings.Contains(string(b),
				`"`+addr+`"`)
		}); err == nil && i >= 0 {
			err = fmt.Errorf("%s is not told: %s", told[i], b)
		}
		return err
	})
	await(t, "it answers for its jobs", func() error {
		_, _, err := first.Do(t.Context(), http.MethodGet, "/v1/jobs/named.1/tasks", nil, nil)
		if err == nil || !strings.Contains(err.Error(), "not-found") {
			return fmt.Errorf("asked for a job that it never had: %w", err)
		}
		return nil
	})
}
