package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	quotasKey = "quotas"
	// maxQuotas bounds the users that have limits in the configuration.
	maxQuotas = 1000
	// maxQuota is beyond what a site has, and what sums of two overflow.
	maxQuota = 1 << 60
)

// quotaNames are the quotas in the configuration, with what they set in thousandths, or units.
var quotaNames = map[string]func(l *node.UserLimits) *uint64{
	"tasks":           func(l *node.UserLimits) *uint64 { return &l.Tasks },
	"cores":           func(l *node.UserLimits) *uint64 { return &l.MilliCPU },
	"bytes":           func(l *node.UserLimits) *uint64 { return &l.Bytes },
	"jobs_per_minute": func(l *node.UserLimits) *uint64 { return &l.JobsPerMinute },
	"shares":          func(l *node.UserLimits) *uint64 { return &l.Shares },
}

// checkUsers checks what is said of this site's users.
func (c Config) checkUsers() error {
	if c.UserHalfLife < node.MinUserHalfLife || c.UserHalfLife > node.MaxUserHalfLife {
		return cli.Usage("user_half_life %s: must be from %s to %s", c.UserHalfLife, node.MinUserHalfLife, node.MaxUserHalfLife)
	}
	_, err := c.UserLimits()
	return err
}

// UserLimits are the quotas of users and of node.EveryUser. What is not named of a user's is as everybody's.
func (c Config) UserLimits() (map[string]node.UserLimits, error) {
	out := map[string]node.UserLimits{}
	for _, line := range everybodyFirst(c.Quotas) {
		user, rest, _ := strings.Cut(line, ":")
		if _, twice := out[user]; twice {
			return nil, cli.Usage("%s: user %q stands twice", quotasKey, user)
		}
		if err := node.CheckLimitsUser(user); err != nil {
			return nil, cli.Usage("%s: user %q: %w", quotasKey, user, err)
		}
		limits := out[node.EveryUser]
		for pair := range strings.SplitSeq(rest, ":") {
			if err := setQuota(&limits, pair); err != nil {
				return nil, cli.Usage("%s: user %s: %w", quotasKey, user, err)
			}
		}
		out[user] = limits
	}
	if len(out) > maxQuotas {
		return nil, cli.Usage("%s: %d users: may be %d; set those of others by cloudshare quota set", quotasKey, len(out), maxQuotas)
	}
	return out, nil
}

// everybodyFirst has the others begin with everybody's.
func everybodyFirst(lines []string) []string {
	var all, others []string
	for _, line := range lines {
		if strings.HasPrefix(line, node.EveryUser+":") {
			all = append(all, line)
		} else {
			others = append(others, line)
		}
	}
	return append(all, others...)
}

// setQuota reads QUOTA=N.
func setQuota(l *node.UserLimits, pair string) error {
	name, text, ok := strings.Cut(pair, "=")
	field := quotaNames[name]
	if field == nil || !ok {
		return fmt.Errorf("%q: must be QUOTA=N with one of %s; 0 = no limit",
			pair, strings.Join(slices.Sorted(maps.Keys(quotaNames)), ", "))
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > maxQuota {
		return fmt.Errorf("%s %q: must be a whole number from 0 (no limit) to %d", name, text, uint64(maxQuota))
	}
	if name == "cores" {
		if n > command.MaxMilliCPU/1000 {
			return fmt.Errorf("cores %d: a site has at most %d", n, command.MaxMilliCPU/1000)
		}
		n *= 1000
	}
	*field(l) = n
	return nil
}

// quotaLines turns the map that stands in the file into lines: users' names may have dots, which separate keys
// elsewhere.
func quotaLines(in any) ([]string, error) {
	users, ok := in.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: must be a map from users to their limits, such as {\"*\": {tasks: 1000}, alice: {cores: 50}}", quotasKey)
	}
	var lines []string
	for _, user := range slices.Sorted(maps.Keys(users)) {
		limits, ok := users[user].(map[string]any)
		if !ok || len(limits) == 0 || strings.ContainsAny(user, ":,") {
			return nil, fmt.Errorf("%s: user %q: must be a name with a map of limits, such as {tasks: 1000, cores: 50}", quotasKey, user)
		}
		line := user
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			line += fmt.Sprintf(":%s=%v", name, limits[name])
		}
		lines = append(lines, line)
	}
	return lines, nil
}
