package jobcmd

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/filesend"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// The flags that name files.
const (
	flagInput     = "input"
	flagInputEach = "input-each"
	flagInputURL  = "input-url"
	flagOutput    = "output"
	flagOptional  = "output-optional"
)

// forms are those of an answer.
var forms = []string{"table", "json", "yaml"}

// fileFlags gives a command that makes a job the flags of its files. --output names files there, so the form of the
// answer has another name; its short one stays.
func fileFlags(a *cli.App, cmd *cobra.Command) {
	f := cmd.Flags()
	jobFileFlags(f)
	f.StringVarP(&a.Format, "format", "o", forms[0], "table, json or yaml")
	fixed := cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("format", fixed) // the flag is there
	_ = cmd.RegisterFlagCompletionFunc(flagOutput, cobra.NoFileCompletions)
}

// jobFileFlags are those of a job's files.
func jobFileFlags(f *pflag.FlagSet) {
	f.StringArray(flagInput, nil, "`FILE[:PATH]` for each task's work folder, or a directory, but for its empty ones (may be repeated)")
	f.StringArray(flagInputEach, nil, "`PATTERN:PATH`: one of the files that match for each task, by name: it sets --count")
	f.StringArray(flagInputURL, nil, "`URL:PATH`: a file that the broker fetches, https://… or s3://BUCKET/KEY (may be repeated)")
	f.StringArray(flagOutput, nil, "`GLOB` of files that each task must leave, FOLDER/ for all in it (may be repeated)")
	f.StringArray(flagOptional, nil, "`GLOB` of files that are kept if they are there (may be repeated)")
	f.String("output-max", jobspec.FormatBytes(jobspec.DefaultOutputBytes), "how much the files of one task may take")
	f.Var(cli.NewChoice("always", jobspec.WhenNames()), "output-when", "always, or success: only of tasks that succeeded")
}

// checkOutputs refuses the name of a form where files are named: it was meant for -o.
func checkOutputs(cmd *cobra.Command) error {
	globs, err := textsOf(cmd.Flags(), flagOutput)
	if err != nil {
		return err
	}
	for _, glob := range globs {
		if slices.Contains(forms, glob) {
			return cli.Usage("--output %s: names files that tasks leave; the form of the answer is -o %s", glob, glob)
		}
	}
	return nil
}

// textsOf returns the values of a flag that may be repeated. GetStringArray has none for a single empty one, as that of
// an unset variable: the task would run without the file that was meant.
func textsOf(f *pflag.FlagSet, name string) ([]string, error) {
	flag := f.Lookup(name)
	if flag == nil {
		return nil, nil
	}
	list, ok := flag.Value.(pflag.SliceValue)
	if !ok {
		return nil, fmt.Errorf("flag --%s is no list", name)
	}
	return list.GetSlice(), nil
}

// sourcesOf reads the flags that name files of this machine.
func sourcesOf(cmd *cobra.Command) (sources []filesend.Source, err error) {
	for _, flag := range []struct {
		name string
		read func(string) (filesend.Source, error)
	}{{flagInput, filesend.ParseInput}, {flagInputEach, filesend.ParseEach}} {
		texts, err := textsOf(cmd.Flags(), flag.name)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			src, err := flag.read(text)
			if err != nil {
				return nil, cli.Usage("--%s %w", flag.name, err)
			}
			sources = append(sources, src)
		}
	}
	return sources, nil
}

// urlInput is an input that the broker fetches.
type urlInput struct {
	Path   string `json:"path"`
	URL    string `json:"url"`
	SHA256 string `json:"sha256,omitempty"`
}

func urlsOf(cmd *cobra.Command) (list []urlInput, err error) {
	texts, err := textsOf(cmd.Flags(), flagInputURL)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		from, path, err := filesend.ParseURL(text)
		if err != nil {
			return nil, cli.Usage("--%s %w", flagInputURL, err)
		}
		list = append(list, urlInput{Path: path, URL: from})
	}
	return list, nil
}

// specGiven returns the job's JSON of the flags given, with what its files are.
func specGiven(cmd *cobra.Command, args []string, s *sending) ([]byte, error) {
	if err := checkOutputs(cmd); err != nil {
		return nil, err
	}
	spec, err := specMap(cmd.Flags(), args)
	if err != nil {
		return nil, err
	}
	sources, err := sourcesOf(cmd)
	if err != nil {
		return nil, err
	}
	sources = append(sources, s.more...)
	if s.script != nil {
		sources = append(sources, s.script.Source)
	}
	urls, err := urlsOf(cmd)
	if err != nil {
		return nil, err
	}
	hooks, err := notifyOf(cmd.Flags())
	if err != nil {
		return nil, err
	}
	if len(hooks) > 0 {
		spec["notify"] = hooks
	}
	inputs := []any{}
	if len(sources) > 0 {
		made, tasks, bad := s.prepare(cmd.Context(), sources)
		if bad == nil {
			bad = setCount(spec, tasks)
		}
		if bad != nil {
			return nil, bad
		}
		if s.script != nil {
			made[len(made)-1].Executable = true
			if bad = s.script.check(); bad != nil {
				return nil, bad
			}
		}
		for i := range made {
			inputs = append(inputs, made[i])
		}
	}
	for _, in := range urls {
		s.urls = append(s.urls, in)
		inputs = append(inputs, in)
	}
	if len(inputs) > 0 {
		spec["inputs"] = inputs
	}
	out, err := marshalSpec(spec)
	if err != nil {
		return nil, cli.Usage("%w", err)
	}
	return out, nil
}

// setCount has a job as many tasks as there are files for them, 0 = as it says itself.
func setCount(spec map[string]any, tasks int) error {
	_, numbered := spec["indices"]
	count, counted := spec["count"].(int64)
	switch {
	case tasks == 0 || numbered:
		return nil
	case counted && count != int64(tasks):
		return cli.Usage("--count %d and --%s, which names %s: omit --count", count, flagInputEach,
			cli.Plural(int64(tasks), "file"))
	}
	spec["count"] = tasks
	return nil
}

// specInputs are the inputs of a job's JSON, as far as this program looks at them.
type specInputs struct {
	Inputs []map[string]json.RawMessage `json:"inputs"`
}
