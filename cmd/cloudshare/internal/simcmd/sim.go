// Package simcmd simulates federations: `sim`. It gives node/sim what was typed, and
// shows and keeps the results.
package simcmd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim"
)

// Command returns `sim`.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sim", Short: "Simulate a federation on a real workload",
		Long: `Simulate a federation on a real workload, with the broker, state machine and
policies of the product, on a virtual clock.

Workloads are logs in the Standard Workload Format, plain or gzipped, as in
https://www.cs.huji.ac.il/labs/parallel/workload/.`,
		Example: `  cloudshare sim run --load 1.5 node/sim/testdata/sample.swf
  cloudshare sim table1 --quick node/sim/testdata/sample.swf
  cloudshare sim ranges --seeds 2 --periods 2 node/sim/testdata/sample.swf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(simRunCommand(a), simTableCommand(a), simRangesCommand(a), simIncentivesCommand(a),
		simLeaderCommand(a), simEstimatesCommand(a))
	return cmd
}

// idleFlags refuses the first flag, by name, that was given and has no effect: why
// is empty if it has one.
func idleFlags(given func(flag string) bool, why map[string]string) error {
	for _, flag := range slices.Sorted(maps.Keys(why)) {
		if given(flag) && why[flag] != "" {
			return cli.Usage("--%s changes nothing %s: omit it", flag, why[flag])
		}
	}
	return nil
}

// when returns the reason if it holds, else nothing.
func when(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}

// simError: what cannot be simulated was asked for wrongly.
func simError(err error) error {
	for _, asked := range []error{sim.ErrBadCase, sim.ErrTooShort, sim.ErrTooFew, sim.ErrOtherStudy, sim.ErrBusy} {
		if errors.Is(err, asked) {
			return cli.Usage("%w", err)
		}
	}
	return err
}

// writeFile creates a file, written as a whole or named in the error.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
