package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// completeWithin bounds how long a shell waits for names.
const completeWithin = 2 * time.Second

// completer asks the broker for what a shell offers.
type completer struct{ *cli.App }

// completeIDs has the shell ask the broker for what a command takes: jobs as
// arguments, sites as flags. A broker that does not answer completes
// nothing.
func (a completer) completeIDs(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		a.completeIDs(c)
	}
	if name, arg, ok := strings.Cut(cmd.Use, " "); ok && (strings.HasPrefix(arg, "ID") || arg == "JOB") &&
		cmd.ValidArgsFunction == nil && name != "" {
		cmd.ValidArgsFunction = a.completeJobs
	}
	for name, f := range map[string]cobra.CompletionFunc{
		"site": a.completeSites, "only": a.completeSites, "not": a.completeSites, "select": a.completeLabels, "job": a.completeJobFlag,
		"by":     cobra.FixedCompletions([]string{"site", "hour", "day", "month", "label:"}, cobra.ShellCompDirectiveNoFileComp),
		"output": cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, f) // one that is there already stays
		}
	}
}

func (a completer) completeJobs(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeJobFlag(cmd, nil, typed)
}

// completeJobFlag offers the newest jobs, with their names and states beside.
func (a completer) completeJobFlag(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	c, err := a.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(contextOf(cmd), completeWithin)
	defer cancel()
	page, err := c.Jobs(ctx, client.JobQuery{Limit: 100})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, j := range page.Items {
		if strings.HasPrefix(j.ID, typed) {
			out = append(out, cobra.CompletionWithDesc(j.ID, cli.Cell(strings.TrimSpace(j.State+" "+j.Name))))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeSites offers the sites; of a list, its last part.
func (a completer) completeSites(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var out []string
	for _, s := range a.sitesNow(cmd) {
		if name := before + s.ID; strings.HasPrefix(name, typed) {
			out = append(out, cobra.CompletionWithDesc(name, s.State))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeLabels offers the labels of machines; of several, the last.
func (a completer) completeLabels(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	found := map[string]bool{}
	for _, s := range a.sitesNow(cmd) {
		for _, m := range s.Machines {
			for key, value := range m.Labels {
				if text := before + key + "=" + value; strings.HasPrefix(text, typed) {
					found[text] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), cobra.ShellCompDirectiveNoFileComp
}

// sitesNow returns the federation's, none if the broker does not answer.
func (a completer) sitesNow(cmd *cobra.Command) []wire.Site {
	c, err := a.Client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(contextOf(cmd), completeWithin)
	defer cancel()
	sites, err := c.Sites(ctx)
	if err != nil {
		return nil
	}
	return sites.Items
}

// contextOf returns the command's, which a completion may lack.
func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
