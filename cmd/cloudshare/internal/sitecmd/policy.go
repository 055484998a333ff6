package sitecmd

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// policyFlags are the fields of a policy that can be set, by flag.
func policyFlags(f *pflag.FlagSet) {
	policies := []string{"ORIG_DIRECT", "REL_DIRECT", "SIMPL_DIRECT", "FAIRSHARE", "ROUND_ROBIN", "ALONE", "CE"}
	f.Var(cli.NewChoice("", policies), "policy", "ORIG_DIRECT, REL_DIRECT, SIMPL_DIRECT, FAIRSHARE, ROUND_ROBIN, ALONE or CE")
	f.Var(cli.NewChoice("", []string{"partial", "completed"}), "running", "how a running task counts: partial or completed")
	f.Bool("prefer-own", false, "a task goes to its own site's free machine if one fits")
	f.Bool("fixed-order", false, "machines by name instead of the keyed random choice")
	f.Int64("reserve-after-ms", 0, "a task too wide for the free machines gets one reserved after this; 0 = off")
	f.Int64("retain-ms", 0, "how long ended jobs stay")
	f.Int64("retain-jobs", 0, "how many ended jobs stay")
	f.Int64("departure-ms", 0, "a lost site's waiting jobs end after this; 0 = never")
	f.Int64("rate-cpu", 0, "charge for a milli-core")
	f.Int64("rate-mem", 0, "charge for a MiB")
	f.Int64("rate-gpu", 0, "charge for a gpu")
}

// policyFields collects the flags that were given, by their JSON names.
func policyFields(f *pflag.FlagSet) (map[string]any, error) {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	policyFlags(known)
	fields := map[string]any{}
	var bad error
	f.Visit(func(flag *pflag.Flag) {
		if known.Lookup(flag.Name) == nil { // --addr, -o
			return
		}
		var v any
		var err error
		switch flag.Value.Type() {
		case "bool":
			v, err = f.GetBool(flag.Name)
		case "int64":
			v, err = f.GetInt64(flag.Name)
		default:
			v = flag.Value.String()
		}
		if err != nil {
			bad = err
		}
		fields[strings.ReplaceAll(flag.Name, "-", "_")] = v
	})
	return fields, bad
}

func policyCommand(a *cli.App) *cobra.Command {
	get := func(cmd *cobra.Command, c *client.Client) (wire.Policy, error) { return c.Policy(cmd.Context()) }
	cmd := a.Readable(cli.ShowCommand(a, "policy", "Show the federation's policy, or change it with `policy set`",
		"  cloudshare policy\n  cloudshare policy set --policy FAIRSHARE", get, showPolicy))
	set := cli.ShowCommand(a, "set", "Change the federation's policy; what is not named stays",
		"  cloudshare policy set --policy FAIRSHARE --prefer-own=false",
		func(cmd *cobra.Command, c *client.Client) (wire.PolicySet, error) {
			fields, err := policyFields(cmd.Flags())
			if err != nil {
				return wire.PolicySet{}, err
			}
			if len(fields) == 0 {
				return wire.PolicySet{}, cli.Usage("nothing to set; see cloudshare policy set --help")
			}
			p, err := c.SetPolicy(cmd.Context(), fields)
			if err == nil && p.Motion != nil {
				a.Note("nothing has changed yet: %s", cli.Outcome(*p.Motion))
			}
			return p, err
		}, func(w io.Writer, p wire.PolicySet) { showPolicy(w, p.Policy) })
	set.Long = `Change the federation's policy; what is not named stays. More than half of the
electors must agree (cloudshare members shows who they are): until then the
change is a motion (cloudshare motions), and the policy stays as it is.`
	policyFlags(set.Flags())
	get1 := a.Readable(cli.ShowCommand(a, "get", "Show the federation's policy", "  cloudshare policy get", get, showPolicy))
	cmd.AddCommand(get1, set)
	return cmd
}

func showPolicy(w io.Writer, p wire.Policy) {
	cli.Row(w, "policy", p.Policy)
	if p.Effective != "" {
		cli.Row(w, "effective", p.Effective)
	}
	cli.Row(w, "running", p.Running)
	cli.Row(w, "prefer_own", p.PreferOwn)
	cli.Row(w, "fixed_order", p.FixedOrder)
	cli.Row(w, "reserve_after_ms", p.ReserveAfterMs)
	cli.Row(w, "retain_ms", p.RetainMs)
	cli.Row(w, "retain_jobs", p.RetainJobs)
	cli.Row(w, "departure_ms", p.DepartureMs)
	cli.Row(w, "rate_cpu", p.RateCPU)
	cli.Row(w, "rate_mem", p.RateMem)
	cli.Row(w, "rate_gpu", p.RateGPU)
	cli.Row(w, "quantum_ms", p.QuantumMs)
	cli.Row(w, "lease_ms", p.LeaseMs)
	cli.Row(w, "margin_ms", p.MarginMs)
}
