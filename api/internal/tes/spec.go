package tes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// placed is where an input of a task comes from.
type placed struct {
	// Exactly one of the next three says it; no root and URL "": it is the content.
	Root    exports.Root
	Rel     string
	URL     string
	Content string
	// Inline: the content stands in the job.
	Inline bool
}

// plan is a task on its way to be a job: what is left to do is to bring its inputs into the store.
type plan struct {
	task    tesTask
	told    []string
	job     map[string]any // of a job's text, without its inputs
	steps   *jobspec.Plan  // nil: the command is the task's own
	inputs  []placed       // of task.Inputs
	exports []node.Export
}

// translate makes a job of a task that parse has returned.
func translate(t tesTask, user string, roots exports.Roots) (*plan, error) {
	p := &plan{task: t, job: map[string]any{}}
	for _, step := range []func(string, exports.Roots) error{
		p.placeInputs, p.placeOutputs, p.resources, p.command, p.names,
	} {
		if err := step(user, roots); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// tell notes what of a task has no effect.
func (p *plan) tell(format string, args ...any) {
	switch len(p.told) {
	case maxTold:
	case maxTold - 1:
		p.told = append(p.told, "more of the task has no effect")
	default:
		p.told = append(p.told, fmt.Sprintf(format, args...))
	}
}

// maxTold bounds the lines that say what of a task has no effect.
const maxTold = 100

func (p *plan) placeInputs(user string, roots exports.Roots) error {
	inline := maxInlineSum
	for i := range p.task.Inputs {
		in, field := &p.task.Inputs[i], fmt.Sprintf("inputs.%d.url", i)
		if in.Content != nil {
			is := placed{Content: *in.Content, Inline: len(*in.Content) <= min(maxInline, inline)}
			if is.Inline {
				inline -= len(is.Content)
			}
			p.inputs = append(p.inputs, is)
			continue
		}
		if remote := strings.HasPrefix(in.URL, "https://") || strings.HasPrefix(in.URL, files.ObjectScheme); remote {
			if in.Type == typeDirectory {
				return bad(field, "%.100q: a DIRECTORY is read below file:// only: name its files one by one", in.URL)
			}
			p.inputs = append(p.inputs, placed{URL: in.URL})
			continue
		}
		root, rel, err := local(in.URL, user, roots)
		if err != nil {
			return bad(field, "%s", err.Error())
		}
		p.inputs = append(p.inputs, placed{Root: root, Rel: rel})
	}
	return nil
}

// local returns the place of a URL of this site's files, or of a plain path.
func local(text, user string, roots exports.Roots) (root exports.Root, rel string, err error) {
	at := text
	if !strings.HasPrefix(text, "/") {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return root, "", fmt.Errorf("%.100q is no URL", text)
		case u.Scheme != "file":
			return root, "", fmt.Errorf("%.100q: scheme %.20q is not known here: inputs are read by https://, s3:// and file://, "+
				"outputs are written by file://", text, u.Scheme)
		case u.Host != "" && u.Host != "localhost", u.RawQuery != "", u.Fragment != "", u.Opaque != "", u.User != nil:
			return root, "", fmt.Errorf("%.100q: write file:///PATH, without host, query and fragment", text)
		}
		at = u.Path
	}
	return roots.Find(user, at)
}

func (p *plan) placeOutputs(user string, roots exports.Roots) error {
	for i := range p.task.Outputs {
		o := &p.task.Outputs[i]
		if strings.HasPrefix(o.URL, files.ObjectScheme) {
			return bad(fmt.Sprintf("outputs.%d.url", i), "%.100q: nothing is written to s3 here: give a file:// URL, or "+
				"write it in the task", o.URL)
		}
		root, rel, err := local(o.URL, user, roots)
		if err != nil {
			return bad(fmt.Sprintf("outputs.%d.url", i), "%s", err.Error())
		}
		if root.ReadOnly {
			return bad(fmt.Sprintf("outputs.%d.url", i), "%.100q: the site's operator has opened %.100q for reading only "+
				"(tes.roots): write to a folder of your own", o.URL, root.Name)
		}
		out := outputOf(o)
		x := node.Export{From: out.Folder(i), Many: out.Many(), Root: root.Name, To: rel, Tag: i, Tree: out.Tree}
		if out.Prefix != "" {
			x.Match = strings.TrimPrefix(strings.TrimPrefix(out.Path, out.Prefix), "/")
		}
		if !x.Many {
			if rel == "." {
				return bad(fmt.Sprintf("outputs.%d.url", i), "%.100q is a folder: name the file", o.URL)
			}
			x.From += "/" + jobspec.StepsSingle
		}
		p.exports = append(p.exports, x)
	}
	return nil
}

// outputOf returns an output in the words of a plan.
func outputOf(o *tesOutput) jobspec.StepOutput {
	out := jobspec.StepOutput{Path: o.Path, Tree: o.Type == typeDirectory}
	if strings.ContainsAny(o.Path, wildcards) {
		out.Path, out.Prefix = goPattern(o.Path), o.PathPrefix
	}
	return out
}

// backend are the backend parameters that are known, and what they set.
var backend = map[string]func(p *plan, value string) error{
	"timeout": func(p *plan, v string) error { p.job["timeout"] = v; return nil },
	"sites": func(p *plan, v string) error {
		if len(p.task.Resources.Zones) > 0 {
			return errors.New("goes without zones, which are names of sites here, too")
		}
		p.only(strings.Split(v, ","))
		return nil
	},
	"priority": func(p *plan, v string) error { return p.number("priority", v) },
	"gpu":      func(p *plan, v string) error { return p.number("gpu", v) },
}

// backendKeys returns them, sorted.
func backendKeys() []string { return slices.Sorted(maps.Keys(backend)) }

func (p *plan) only(list []string) {
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	p.job["sites"] = map[string]any{"only": list}
}

func (p *plan) number(name, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return errors.New("must be a whole number")
	}
	if name == "gpu" {
		p.job["resources"].(map[string]any)["gpu"] = n //nolint:forcetypeassert // resources makes it
		return nil
	}
	p.job[name] = n
	return nil
}

// gb is a gigabyte as it is understood: the larger one, since engines mean either.
const gb = 1 << 30

func (p *plan) resources(string, exports.Roots) error {
	need := map[string]any{}
	p.job["resources"] = need
	r := p.task.Resources
	if r == nil {
		return nil
	}
	if r.CPUCores != nil && *r.CPUCores > 0 {
		need["cpu"] = *r.CPUCores
	}
	if r.RAM != nil && *r.RAM > 0 {
		need["memory"] = fmt.Sprintf("%dMi", int64(math.Ceil(*r.RAM*1024)))
	}
	if r.Disk != nil && *r.Disk > 0 && len(p.task.Outputs) == 0 {
		p.tell("disk_gb is ignored: it bounds what a task with outputs leaves")
	}
	if r.Preemptible {
		p.tell("preemptible is ignored: no task is preempted here")
	}
	if len(r.Zones) > 0 {
		p.only(slices.Clone(r.Zones))
	}
	return p.backend(r)
}

// backend reads the backend parameters. Those that are not known are not kept.
func (p *plan) backend(r *tesResources) error {
	known := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(r.BackendParameters)) {
		set := backend[strings.ToLower(key)]
		switch {
		case set != nil:
			if err := set(p, r.BackendParameters[key]); err != nil {
				return bad("resources.backend_parameters."+key, "%.40q %s", r.BackendParameters[key], err.Error())
			}
			known[key] = r.BackendParameters[key]
		case r.BackendParametersStrict:
			return bad(fmt.Sprintf("resources.backend_parameters.%.40s", key), "is not known here, and "+
				"backend_parameters_strict is set; known are %s", strings.Join(backendKeys(), ", "))
		default:
			p.tell("backend parameter %.40q is ignored: known are %s", key, strings.Join(backendKeys(), ", "))
		}
	}
	own := *r
	own.BackendParameters = known
	p.task.Resources = &own
	return nil
}

// command sets what runs: the executor's own command if it needs nothing else, else a plan.
func (p *plan) command(string, exports.Roots) error {
	t := &p.task
	p.job["image"] = t.Executors[0].Image
	only := &t.Executors[0]
	if len(t.Executors) == 1 && only.Workdir+only.Stdin+only.Stdout+only.Stderr == "" && !only.IgnoreError &&
		len(t.Outputs)+len(t.Volumes) == 0 {
		p.job["command"], p.job["env"] = only.Command, only.Env
		return nil
	}
	p.steps = &jobspec.Plan{Folders: folders(t)}
	for i := range t.Executors {
		e := &t.Executors[i]
		p.steps.Steps = append(p.steps.Steps, jobspec.Step{
			Command: e.Command, Workdir: e.Workdir, Env: e.Env, Stdin: e.Stdin, Stdout: e.Stdout, Stderr: e.Stderr,
			IgnoreError: e.IgnoreError,
		})
	}
	outputs := map[string]any{"paths": []string{jobspec.StepsRecordAt}}
	for i := range t.Outputs {
		p.steps.Outputs = append(p.steps.Outputs, outputOf(&t.Outputs[i]))
	}
	if len(t.Outputs) > 0 {
		outputs["optional"] = []string{jobspec.StepsOutputsAt}
		if r := t.Resources; r != nil && r.Disk != nil && *r.Disk > 0 {
			outputs["max"] = strconv.FormatInt(int64(math.Ceil(*r.Disk*gb)), 10)
		}
	}
	p.job["outputs"], p.job["command"] = outputs, jobspec.StepsCommand()
	return nil
}

// folders returns those that a task is to find: its volumes, where it works, and where it writes.
func folders(t *tesTask) []string {
	list := slices.Clone(t.Volumes)
	add := func(p string) {
		if p != "" && p != "/" {
			list = append(list, p)
		}
	}
	for i := range t.Executors {
		e := &t.Executors[i]
		add(e.Workdir)
		for _, p := range []string{e.Stdout, e.Stderr} {
			if p != "" {
				add(path.Dir(p))
			}
		}
	}
	for i := range t.Outputs {
		o := &t.Outputs[i]
		if strings.ContainsAny(o.Path, wildcards) {
			add(o.PathPrefix)
		} else {
			add(path.Dir(o.Path))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// names sets the name and the labels of the job, as far as they can be such.
func (p *plan) names(string, exports.Roots) error {
	name := strings.Map(func(r rune) rune {
		if jobspec.Unprintable(r) {
			return ' '
		}
		return r
	}, p.task.Name)
	if len(name) > jobspec.MaxLabelText {
		name = strings.ToValidUTF8(name[:jobspec.MaxLabelText], "")
	}
	p.job["name"] = name
	labels := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(p.task.Tags)) {
		if value := p.task.Tags[key]; jobspec.CheckLabel(key, value) == "" && len(labels) < jobspec.MaxLabels {
			labels[key] = value
		}
	}
	p.job["labels"] = labels
	return nil
}

// spec returns the job whose inputs are in the store, in the words of a job's text.
func (p *plan) spec(inputs []map[string]any) (jobspec.Spec, error) {
	if p.steps != nil {
		at, text, err := jobspec.StepsInput(p.steps)
		if err != nil {
			return jobspec.Spec{}, err
		}
		inputs = append(inputs, map[string]any{"path": at, "content": text})
	}
	p.job["inputs"] = inputs
	text, err := json.Marshal(p.job)
	if err != nil {
		return jobspec.Spec{}, fmt.Errorf("write a job: %w", err)
	}
	return jobspec.ParseSpec(text)
}

// attached returns what is kept of a task beside its job.
func (p *plan) attached() (*node.Attached, error) {
	doc := kept{Task: p.task, Told: p.told}
	text, err := doc.encode()
	if err != nil {
		return nil, fmt.Errorf("write a task: %w", err)
	}
	a := &node.Attached{Name: p.task.Name, Tags: p.task.Tags, Document: text, Exports: p.exports}
	if p.steps != nil {
		a.Record = jobspec.StepsRecordAt
	}
	return a, nil
}
