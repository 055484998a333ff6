package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// simple is a command without arguments that shows one answer.
func simple[T any](a *app, use, short, example string, ask func(cmd *cobra.Command, c *client.Client) (T, error), table func(io.Writer, T)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			v, err := ask(cmd, c)
			if err != nil {
				return err
			}
			return a.show(v, func(w io.Writer) { table(w, v) })
		},
	}
}

func (a *app) sitesCommand() *cobra.Command {
	var machines bool
	cmd := simple(a, "sites", "List the sites of the federation", "  cloudshare sites\n  cloudshare sites --machines",
		func(cmd *cobra.Command, c *client.Client) (wire.List[wire.Site], error) {
			return c.Sites(cmd.Context())
		},
		func(w io.Writer, l wire.List[wire.Site]) {
			if machines {
				showMachines(w, l)
				return
			}
			row(w, "SITE", "STATE", "VOTER", "CORES", "LENT", "ASSIGNED", "HOME", "HTTP")
			for _, s := range l.Items {
				row(w, s.ID, siteText(s), yes(s.Voter), s.Capacity.CPU, s.Exposed.CPU, s.Assigned.CPU, s.Home.CPU, s.Addresses.HTTP)
			}
			for _, s := range l.Items {
				if s.Contact != nil && !s.Contact.Reached {
					fmt.Fprintf(w, "\n%s is not reached at http %s: %s\n", s.ID, s.Contact.Address, s.Contact.Why)
				}
			}
		})
	cmd.Flags().BoolVar(&machines, "machines", false, "the machines that they lend, with the labels that jobs may select by")
	return cmd
}

// showMachines lists what is lent now.
func showMachines(w io.Writer, l wire.List[wire.Site]) {
	row(w, "SITE", "MACHINE", "LENT", "FREE", "RUNS", "LABELS")
	for _, s := range l.Items {
		for _, m := range s.Machines {
			var labels []string
			for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
				labels = append(labels, key+"="+m.Labels[key])
			}
			row(w, s.ID, m.Name, m.Exposed.CPU, m.Free.CPU, strings.Join(m.Runs, ","), strings.Join(labels, ","))
		}
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (a *app) queueCommand() *cobra.Command {
	var in amounts
	return simple(a, "queue", "Show what waits, per owner", "  cloudshare queue",
		func(cmd *cobra.Command, c *client.Client) (list wire.List[wire.Queue], err error) {
			if list, err = c.Queue(cmd.Context()); err == nil {
				in, err = a.amounts(cmd.Context(), c)
			}
			return list, err
		},
		func(w io.Writer, l wire.List[wire.Queue]) {
			row(w, "OWNER", "WAITING", "CORES", "PRIORITY")
			for _, q := range l.Items {
				row(w, q.Site, q.Waiting, q.CPU, in.standing(q.Priority))
			}
		})
}

func (a *app) ledgerCommand() *cobra.Command {
	var in amounts
	cmd := simple(a, "ledger", "Show who used how much of whose machines", "  cloudshare ledger\n  cloudshare ledger -o json",
		func(cmd *cobra.Command, c *client.Client) (ledger wire.Ledger, err error) {
			if ledger, err = c.Ledger(cmd.Context()); err == nil {
				in, err = a.amounts(cmd.Context(), c)
			}
			return ledger, err
		},
		func(w io.Writer, l wire.Ledger) { showLedger(w, l, in) })
	cmd.Long = `Show who used how much of whose machines.

The table is in core-hours where the policy counts time on cores; ORIG_DIRECT
and REL_DIRECT also count how long ago it was. -o json has the exact sums, in
the unit that it names.`
	return cmd
}

func showLedger(w io.Writer, l wire.Ledger, in amounts) {
	row(w, "SITE", "CONTRIBUTION", "UTILITY", "PRIORITY")
	for _, s := range l.Sites {
		row(w, s.Site, in.standing(s.Contribution), in.standing(s.Utility), in.standing(s.Priority))
	}
	fmt.Fprintf(w, "\nunit %s, entry %d\n\n", in.unit(l.Unit), l.Index)
	row(w, "OWNER", "RAN ON", "TASKS", "USED")
	for _, c := range l.Matrix {
		row(w, c.Owner, c.Executor, c.Tasks, in.used(c.A))
	}
}

// siteText is a site's state and, if it lends nothing, why.
func siteText(s wire.Site) string {
	if s.Closed == "" {
		return s.State
	}
	return s.State + ", " + s.Closed
}

func (a *app) statusCommand() *cobra.Command {
	var hash bool
	cmd := simple(a, "status", "Show what a broker knows of itself and the federation", "  cloudshare status",
		func(cmd *cobra.Command, c *client.Client) (wire.Status, error) { return c.Status(cmd.Context(), hash) },
		func(w io.Writer, s wire.Status) {
			row(w, "site", s.Site)
			row(w, "lead", s.Lead)
			row(w, "term", s.Term)
			row(w, "entry", s.Index)
			if s.StateHash != nil {
				row(w, "state hash", fmt.Sprintf("%s at entry %d", s.StateHash.Hash, s.StateHash.Index))
			}
			row(w, "compared", comparedText(s.Compared))
			for _, u := range s.Unreached {
				row(w, "not reached", fmt.Sprintf("by %s, at %s: %s", u.By, u.Address, u.Why))
			}
			row(w, "federation", s.Federation)
			row(w, "voters", strings.Join(s.Voters, " "))
			row(w, "members", strings.Join(s.Members, " "))
			row(w, "version", s.Version)
			row(w, "draining", drainWord(s.Drain))
			row(w, "estimates", calibrationText(s.Estimates))
			row(w, "outputs", outputsText(s.Outputs))
			if s.Outputs.Trouble != "" {
				row(w, "  trouble", s.Outputs.Trouble)
			}
			for _, h := range s.Handlers {
				row(w, "handler "+h.Name, h.Status)
				if h.Trouble != "" {
					row(w, "  trouble", h.Trouble)
				}
			}
		})
	cmd.Flags().BoolVar(&hash, "hash", true, "have the state's hash computed")
	return cmd
}

// outputsText says what is kept of the output of ended attempts.
func outputsText(o wire.Outputs) string {
	const mib = 1 << 20
	text := fmt.Sprintf("of %d attempts, %.1f of %d MiB", o.Kept, float64(o.Bytes)/mib, o.MaxBytes/mib)
	if o.Oldest != nil {
		text += ", the oldest of " + o.Oldest.Local().Format(time.DateTime)
	}
	if o.RemovedByAge+o.RemovedByBytes > 0 {
		text += fmt.Sprintf("; removed %d by age, %d for room", o.RemovedByAge, o.RemovedByBytes)
	}
	return text
}

// comparedText says how a broker's state compares with other brokers'.
func comparedText(c wire.Compared) string {
	text := "-"
	switch {
	case len(c.With) > 0:
		text = fmt.Sprintf("the same as %s at entry %d", strings.Join(c.With, " "), c.Index)
	case c.Index > 0:
		text = fmt.Sprintf("the same as nobody at entry %d", c.Index)
	}
	if len(c.Differs) > 0 {
		text += "; DIFFERS from " + strings.Join(c.Differs, " ")
	}
	return text
}

// policyFlags are the fields of a policy that can be set, by flag.
func policyFlags(f *pflag.FlagSet) {
	f.String("policy", "", "ORIG_DIRECT, REL_DIRECT, SIMPL_DIRECT, FAIRSHARE, ROUND_ROBIN, ALONE, CE or SHAPLEY")
	f.String("running", "", "how a running task counts: partial or completed")
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

func (a *app) policyCommand() *cobra.Command {
	get := func(cmd *cobra.Command, c *client.Client) (wire.Policy, error) { return c.Policy(cmd.Context()) }
	cmd := a.readable(simple(a, "policy", "Show the federation's policy, or change it with `policy set`",
		"  cloudshare policy\n  cloudshare policy set --policy FAIRSHARE", get, showPolicy))
	set := simple(a, "set", "Change the federation's policy; what is not named stays",
		"  cloudshare policy set --policy FAIRSHARE --prefer-own=false",
		func(cmd *cobra.Command, c *client.Client) (wire.Policy, error) {
			fields, err := policyFields(cmd.Flags())
			if err != nil {
				return wire.Policy{}, err
			}
			if len(fields) == 0 {
				return wire.Policy{}, usage("nothing to set; see cloudshare policy set --help")
			}
			return c.SetPolicy(cmd.Context(), fields)
		}, showPolicy)
	policyFlags(set.Flags())
	get1 := a.readable(simple(a, "get", "Show the federation's policy", "  cloudshare policy get", get, showPolicy))
	cmd.AddCommand(get1, set)
	return cmd
}

func showPolicy(w io.Writer, p wire.Policy) {
	row(w, "policy", p.Policy)
	if p.Effective != "" {
		row(w, "effective", p.Effective)
	}
	row(w, "running", p.Running)
	row(w, "prefer_own", p.PreferOwn)
	row(w, "fixed_order", p.FixedOrder)
	row(w, "reserve_after_ms", p.ReserveAfterMs)
	row(w, "retain_ms", p.RetainMs)
	row(w, "retain_jobs", p.RetainJobs)
	row(w, "departure_ms", p.DepartureMs)
	row(w, "rate_cpu", p.RateCPU)
	row(w, "rate_mem", p.RateMem)
	row(w, "rate_gpu", p.RateGPU)
	row(w, "quantum_ms", p.QuantumMs)
	row(w, "lease_ms", p.LeaseMs)
	row(w, "margin_ms", p.MarginMs)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  cloudshare version -o json",
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return a.show(v, func(w io.Writer) { fmt.Fprintf(w, "cloudshare %s (%s, %s)\n", version, v["go"], v["platform"]) })
		},
	}
}
