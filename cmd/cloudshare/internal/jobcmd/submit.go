package jobcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// submission is what `submit` was asked for.
type submission struct {
	file         string
	key          string
	strict       bool
	wait, follow bool
	dryRun       bool
	quiet        bool
}

func submitCommand(a *cli.App) *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use: "submit [flags] -- COMMAND [ARG…] | SCRIPT [ARG…] | -f FILE", Short: "Submit a job",
		Long: `Submit a job of one or many equal tasks, and print its id.

The command stands after "--". With -f the job comes from a YAML or JSON file
("-" reads standard input); several documents in it are several jobs.

Without "--" a script of this machine is the command: it travels with the job and is
run by the program that its first line names, with the arguments behind it. Comment
lines before its first command may hold flags of this command that say what the job
is, as words of a shell that are not evaluated:

  #!/bin/sh
  #CLOUDSHARE --cpu 4 --memory 2Gi
  #CLOUDSHARE --input params.json --output 'out/*.csv'

A flag on the command line replaces all of its kind in the script. Files of --input in
a script stand in its folder, or below it.

Files travel with tasks: those of --input are in a task's work folder when it begins,
wherever it runs, and those that --output names come back from there (cloudshare
fetch). What the broker has already is not sent again. In a job's file an input may
name one of this machine, {path: in.txt, file: ./in.txt}, relative to that file.`,
		Example: `  cloudshare submit -- sh -c 'echo hello from $CLOUDSHARE_SITE'
  cloudshare submit --count 20 --cpu 1 --timeout 1m --wait -- sleep 5
  cloudshare submit --follow -- make -C /srv/render
  cloudshare submit --dry-run --cpu 8 -- make -C /srv/render
  cloudshare submit -f job.yaml
  cloudshare submit --cpu 8 nightly.sh 2026-11-29
  cloudshare submit --notify https://hooks.example.org/nightly -- make -C /srv/render
  cloudshare submit --after site-1.42 --after site-1.43:any -- ./merge.sh
  cloudshare submit --count 100 --parallel 5 --max-attempts 4 --retry-backoff 10s --no-retry-on 2,64-78 -- ./fetch.sh
  cloudshare submit --input sim.py --input-each 'params/*.json:p.json' --output 'out/*.csv' -- python3 sim.py p.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkKey(cmd.Flags(), s.key); err != nil {
				return err
			}
			return submitGiven(a, cmd, args, s)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command are the command's
	f.StringVarP(&s.file, "file", "f", "", "read the job from `FILE`, YAML or JSON, - for standard input")
	f.StringVar(&s.key, "key", "", "idempotency key: the same key and job again is one job")
	f.BoolVar(&s.strict, "strict", false, "refuse a job that no present site could run")
	f.BoolVar(&s.dryRun, "dry-run", false, "submit nothing; tell what would become of the job, as cloudshare why does")
	f.BoolVar(&s.wait, "wait", false, "wait for the end; exit 10 if it failed, 11 cancelled, 12 lost")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "print ids only, and no notes")
	f.BoolVar(&s.follow, "follow", false, "print the task's output as it comes, and wait")
	specFlags(f)
	fileFlags(a, cmd)
	return cmd
}

// checkKey refuses an empty key: a variable that was not set would make a second
// job where one was wanted.
func checkKey(f *pflag.FlagSet, key string) error {
	if f.Changed("key") && key == "" {
		return cli.Usage("--key is empty: give a key, or omit --key")
	}
	return nil
}

// specFlags are a job's fields, by flag.
func specFlags(f *pflag.FlagSet) {
	f.String("name", "", "a name for people")
	f.String("image", "", "container image")
	f.StringArray("env", nil, "`NAME=VALUE` for the tasks (may be repeated)")
	f.Int64("count", 1, "number of tasks")
	f.String("indices", "", "number the tasks by these `INDICES`, e.g. 3,17,40-60, instead of --count")
	f.String("timeout", "", "end a task that runs longer, e.g. 90s")
	f.Int64("cpu", 1, "cores a task needs")
	f.String("memory", "0", "memory a task may use, e.g. 256Mi; 0 = no limit")
	f.Int64("gpu", 0, "gpus a task needs")
	f.Int64("max-attempts", 1, "how often a failing task is tried")
	f.Var(cli.NewChoice("fenced", jobspec.OnLossNames()), "on-loss", "when its site is lost: fenced, immediate or never")
	f.Int64("priority", 0, "higher first, among your own jobs")
	f.StringArray("label", nil, "`KEY=VALUE` (may be repeated)")
	f.StringSlice("only", nil, "run on these `SITES` only")
	f.StringSlice("not", nil, "never run on these `SITES`")
	f.StringArray("select", nil, "run on machines with such labels only: `SELECTOR`, e.g. gpu=a100, gpu!=v100, 'zone in (a,b)', gpu or !gpu (may be repeated)")
	f.StringArray(flagNotify, nil, "`URL` that is told when the job has ended, at a host that the site's operator allows (may be repeated)")
	f.StringArray(flagNotifyFailed, nil, "`URL` that is told if it ended without success (may be repeated)")
	afterFlag(f)
	retryFlags(f)
	f.Bool("network", false, "the tasks need a network: they run at home, or where other sites' tasks have one")
}

// specPaths are where the flags stand in a job's JSON.
var specPaths = map[string]string{
	"name": "name", "image": "image", "env": "env", "count": "count", "indices": "indices", "timeout": "timeout",
	"cpu": "resources.cpu", "memory": "resources.memory", "gpu": "resources.gpu",
	"max-attempts": "retry.max_attempts", "on-loss": "retry.on_loss", "priority": "priority",
	"label": "labels", "only": "sites.only", "not": "sites.not", "select": "selectors",
	"network": "network", flagNotify: "notify", flagNotifyFailed: "notify", flagAfter: "after",
	flagBackoff: "retry.backoff", flagBackoffMax: "retry.backoff_max", flagRetryOn: "retry.only_on",
	flagNoRetryOn: "retry.not_on", flagParallel: "parallel",
	flagInput: "inputs", flagInputEach: "inputs", flagInputURL: "inputs",
	flagOutput: "outputs.paths", flagOptional: "outputs.optional", "output-max": "outputs.max", "output-when": "outputs.when",
}

// specMap builds a job of the flags given, but for its inputs and who is told; the broker knows the defaults
// and judges the values.
func specMap(f *pflag.FlagSet, command []string) (map[string]any, error) {
	spec := map[string]any{}
	if len(command) > 0 {
		spec["command"] = command
	}
	var bad error
	f.Visit(func(flag *pflag.Flag) {
		path, known := specPaths[flag.Name]
		if !known || path == "inputs" || path == "notify" { // these are made of several flags
			return
		}
		v, err := flagValue(f, flag)
		if err != nil && bad == nil {
			bad = err
		}
		at := spec
		if group, field, nested := strings.Cut(path, "."); nested {
			inner, ok := spec[group].(map[string]any)
			if !ok {
				inner = map[string]any{}
				spec[group] = inner
			}
			at, path = inner, field
		}
		at[path] = v
	})
	return spec, bad
}

func flagValue(f *pflag.FlagSet, flag *pflag.Flag) (any, error) {
	switch flag.Value.Type() {
	case "int64":
		return f.GetInt64(flag.Name)
	case "bool":
		return f.GetBool(flag.Name)
	case "stringSlice":
		return f.GetStringSlice(flag.Name)
	case "stringArray":
		pairs, err := textsOf(f, flag.Name)
		if err != nil {
			return nil, err
		}
		switch flag.Name {
		case "select":
			return splitSelectors(pairs), nil
		case flagOutput, flagOptional:
			return pairs, nil
		case flagAfter:
			return afterGiven(pairs), nil
		}
		m := map[string]string{}
		for _, pair := range pairs {
			k, v, ok := strings.Cut(pair, "=")
			if _, twice := m[k]; !ok || twice {
				return nil, cli.Usage("--%s %q: must be NAME=VALUE, each name once", flag.Name, pair)
			}
			m[k] = v
		}
		return m, nil
	}
	return flag.Value.String(), nil
}

// splitSelectors takes texts of several apart: at commas, but for those between
// parentheses.
func splitSelectors(texts []string) (list []string) {
	for _, text := range texts {
		from, inside := 0, false
		for i, c := range text {
			switch {
			case c == '(' || c == ')':
				inside = c == '('
			case c == ',' && !inside:
				list = append(list, text[from:i])
				from = i + 1
			}
		}
		list = append(list, text[from:])
	}
	return list
}

// submitGiven sends one job, or the documents of a file.
func submitGiven(a *cli.App, cmd *cobra.Command, args []string, s submission) error {
	a.Quiet = s.quiet
	files := &sending{app: a}
	specs, err := specsGiven(a, cmd, args, s, files)
	if err != nil {
		return err
	}
	if s.dryRun {
		return showDryRun(a, cmd, specs, s)
	}
	if err := s.check(specs); err != nil {
		return err
	}
	if err := files.send(cmd.Context()); err != nil {
		return err
	}
	if len(specs) != 1 {
		return submitMany(a, cmd, specs, s)
	}
	return submitOne(a, cmd, specs[0], s)
}

// specsGiven reads the jobs, and the files that they name.
func specsGiven(a *cli.App, cmd *cobra.Command, args []string, s submission, files *sending) ([][]byte, error) {
	if s.file == "" {
		if len(args) == 0 && !cmd.Flags().Changed("image") {
			return nil, cli.Usage("no command: cloudshare submit [flags] -- COMMAND, a script, or -f FILE")
		}
		if len(args) > 0 && cmd.ArgsLenAtDash() < 0 {
			var err error
			if args, err = scriptGiven(a, cmd, args, files); err != nil {
				return nil, err
			}
		}
		spec, err := specGiven(cmd, args, files)
		return [][]byte{spec}, err
	}
	if err := onlyFile(cmd.Flags(), args); err != nil {
		return nil, err
	}
	specs, err := readSpecs(a, s.file)
	for i := range specs {
		if specs[i], err = files.fromFile(cmd.Context(), specs[i], filepath.Dir(s.file)); err != nil {
			return nil, fmt.Errorf("job %d of %s: %w", i+1, s.file, err)
		}
	}
	return specs, err
}

// check refuses what cannot be done with so many jobs, before their files are sent.
func (s *submission) check(specs [][]byte) error {
	switch {
	case len(specs) == 0:
		return cli.Usage("%s holds no job", s.file)
	case s.follow && len(specs) > 1:
		return cli.Usage("--follow prints one job's output; the file holds %d", len(specs))
	case s.follow && taskCount(specs[0]) > 1:
		return cli.Usage("--follow prints one task's output: submit without it, then cloudshare logs ID --all --follow")
	}
	return nil
}

// onlyFile refuses to mix a file with a job on the command line.
func onlyFile(f *pflag.FlagSet, args []string) error {
	if len(args) > 0 {
		return cli.Usage("-f and a command: give one of them")
	}
	var bad error
	f.Visit(func(flag *pflag.Flag) {
		if _, ok := specPaths[flag.Name]; ok {
			bad = cli.Usage("-f and --%s: put %s into the file", flag.Name, specPaths[flag.Name])
		}
	})
	return bad
}

func submitOne(a *cli.App, cmd *cobra.Command, spec []byte, s submission) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	accepted, err := c.Submit(cmd.Context(), spec, client.SubmitOptions{Key: s.key, Strict: s.strict})
	if err != nil {
		return err
	}
	return reportSubmitted(cmd.Context(), a, c, accepted, s)
}

// reportSubmitted shows a job that was accepted, and follows or waits for it.
func reportSubmitted(ctx context.Context, a *cli.App, c *client.Client, accepted client.Accepted, s submission) error {
	a.Quiet = s.quiet
	if accepted.Replayed {
		a.Note("submitted before under this key")
	}
	if accepted.Reason != "" {
		a.Note("%s: %s", accepted.State, accepted.Reason)
	}
	if !s.follow { // else the data is the output
		if err := a.Show(accepted.Accepted, printID(accepted.ID)); err != nil {
			return err
		}
	}
	switch {
	case s.follow:
		a.Note("job %s", accepted.ID)
		return followJob(ctx, a, c, accepted.ID)
	case s.wait:
		return waitForJobs(ctx, a, c, []string{accepted.ID})
	}
	return nil
}

// taskCount reads only how many tasks there are; what is wrong with a job the broker says.
func taskCount(spec []byte) int64 {
	var s struct {
		Count   int64  `json:"count"`
		Indices string `json:"indices"`
	}
	if json.Unmarshal(spec, &s) != nil {
		return 1
	}
	if x, err := jobspec.ParseIndices(s.Indices); err == nil {
		return int64(x.Len())
	}
	return s.Count
}

// submitMany sends each job as a line. One refused job does not stop others.
func submitMany(a *cli.App, cmd *cobra.Command, specs [][]byte, s submission) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	var ids []string
	var first error
	var results []any
	n, repeats := 0, 0
	err = c.SubmitMany(cmd.Context(), lines(specs), client.SubmitOptions{Key: s.key, Strict: s.strict},
		func(r client.Result) error {
			n++
			if r.Problem != nil {
				results = append(results, r.Problem)
				fmt.Fprintf(a.Err, "job %d of %s: %s\n", n, s.file, cli.Explain(r.Problem)) // an error, also if quiet
				if first == nil {
					first = r.Problem
				}
				return nil
			}
			if r.Accepted.Replayed {
				repeats++
			}
			results = append(results, r.Accepted)
			ids = append(ids, r.Accepted.ID)
			return nil
		})
	if err != nil {
		return err
	}
	if repeats > 0 {
		a.Note("%d of %d submitted before under this key", repeats, n)
	}
	if err := a.Show(wire.List[any]{Items: results}, func(w io.Writer) {
		for _, id := range ids {
			fmt.Fprintln(w, id)
		}
	}); err != nil {
		return err
	}
	if s.wait && len(ids) > 0 {
		if err := waitForJobs(cmd.Context(), a, c, ids); err != nil && first == nil {
			return err
		}
	}
	if first != nil {
		code := cli.CodeOf(first)
		if code == cli.ExitUsage && len(ids) > 0 { // some are submitted: not as if it had been mistyped
			code = cli.ExitRefused
		}
		return cli.WithExit(code, fmt.Errorf("%d of %d jobs were refused", n-len(ids), n))
	}
	return nil
}
