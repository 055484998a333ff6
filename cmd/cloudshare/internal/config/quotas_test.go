package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/node"
)

func loadQuotas(t *testing.T, text string, environ ...string) (map[string]node.UserLimits, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broker.yaml")
	if err := os.WriteFile(path, []byte("site: site-1\n"+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	AddFlags(flags)
	c, err := Load(path, flags, func() []string { return environ })
	if err != nil {
		return nil, err
	}
	return c.UserLimits()
}

// TestQuotasInTheFile: users may have dots, what a user's line does not name is as everybody's, wherever that stands.
func TestQuotasInTheFile(t *testing.T) {
	want := map[string]node.UserLimits{
		"*":              {Tasks: 1000, MilliCPU: 50_000},
		"a.lovelace@lab": {Tasks: 5000, MilliCPU: 50_000},
		"zoe":            {Tasks: 1000, JobsPerMinute: 60, Bytes: 1 << 20},
	}
	for name, in := range map[string][2]string{
		"file":        {`quotas: {a.lovelace@lab: {tasks: 5000}, "*": {tasks: 1000, cores: 50}, zoe: {jobs_per_minute: 60, cores: 0, bytes: 1048576}}`},
		"environment": {"", "CLOUDSHARE_QUOTAS=a.lovelace@lab:tasks=5000,*:tasks=1000:cores=50,zoe:jobs_per_minute=60:cores=0:bytes=1048576"},
	} {
		got, err := loadQuotas(t, in[0], in[1])
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := loadQuotas(t, ""); err != nil || len(got) != 0 {
		t.Errorf("without any: %v, %v", got, err)
	}
}

// TestWrongQuotas: each is refused by the user's name and what is wrong.
func TestWrongQuotas(t *testing.T) {
	for text, want := range map[string]string{
		`quotas: [alice]`:                               "must be a map from users",
		`quotas: {alice: 5}`:                            `user "alice": must be a name with a map`,
		`quotas: {alice: {}}`:                           `user "alice": must be a name with a map`,
		`quotas: {Alice: {tasks: 5}}`:                   `user "Alice": must be 1 to 63 small letters`,
		`quotas: {"a:b": {tasks: 5}}`:                   `user "a:b"`,
		`quotas: {alice: {task: 5}}`:                    `user alice: "task=5": must be QUOTA=N with one of bytes, cores, jobs_per_minute, shares, tasks`,
		`quotas: {alice: {tasks: -5}}`:                  `user alice: tasks "-5": must be a whole number`,
		`quotas: {alice: {cores: 1.5}}`:                 `user alice: cores "1.5": must be a whole number`,
		`quotas: {alice: {cores: 1000000000000}}`:       "user alice: cores 1000000000000: a site has at most",
		`quotas: {alice: {bytes: 2000000000000000000}}`: `user alice: bytes`,
	} {
		if got, err := loadQuotas(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", text, got, err, want)
		}
	}
	if got, err := loadQuotas(t, "", "CLOUDSHARE_QUOTAS=alice:tasks=5,alice:tasks=6"); err == nil || !strings.Contains(err.Error(), `"alice" stands twice`) {
		t.Errorf("twice: %v, %v", got, err)
	}
	if got, err := loadQuotas(t, "", "CLOUDSHARE_QUOTAS=alice"); err == nil || !strings.Contains(err.Error(), "user alice") {
		t.Errorf("none: %v, %v", got, err)
	}
}

// TestUserHalfLife: a week unless it is said; what is too short, too long or no time is refused by its name.
func TestUserHalfLife(t *testing.T) {
	flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	AddFlags(flags)
	load := func(environ ...string) (Config, error) {
		return Load("", flags, func() []string { return append(environ, "CLOUDSHARE_SITE=site-1") })
	}
	if c, err := load(); err != nil || c.UserHalfLife != node.UserHalfLife {
		t.Errorf("%s, %v", c.UserHalfLife, err)
	}
	if c, err := load("CLOUDSHARE_USER_HALF_LIFE=36h"); err != nil || c.UserHalfLife != 36*time.Hour {
		t.Errorf("%s, %v", c.UserHalfLife, err)
	}
	for _, bad := range []string{"0", "59m", "8761h", "-1h", "soon"} {
		if _, err := load("CLOUDSHARE_USER_HALF_LIFE=" + bad); err == nil || !strings.Contains(err.Error(), "user_half_life") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
