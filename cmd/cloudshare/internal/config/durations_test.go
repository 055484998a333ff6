package config

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// Durations take days and weeks from all sources; what is none is told with its key.
func TestDurationsOfTheConfiguration(t *testing.T) {
	load := func(flag, variable string) (Config, error) {
		flags := pflag.NewFlagSet("broker", pflag.ContinueOnError)
		AddFlags(flags)
		if err := flags.Parse([]string{"--site", "a", "--archive-keep", flag}); err != nil {
			return Config{}, err
		}
		return Load("", flags, func() []string { return []string{"CLOUDSHARE_TASK_LOGS_KEEP=" + variable} })
	}
	c, err := load("2w", "90d")
	if c.Archive.Keep != 14*24*time.Hour || c.TaskLogs.Keep != 90*24*time.Hour {
		t.Errorf("%v, %v, %v", c.Archive.Keep, c.TaskLogs.Keep, err)
	}
	if _, err = load("2w", "90"); cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), "task_logs.keep") {
		t.Errorf("no duration: %v", err)
	}
}
