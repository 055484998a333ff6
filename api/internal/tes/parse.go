package tes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Bounds of a task.
const (
	// MaxBody is how many bytes a task's document has at most.
	MaxBody     = 8 << 20
	maxOutputs  = 1000
	maxVolumes  = 100
	maxTags     = 1000
	maxGB       = 1 << 20
	maxPathText = 1024
)

// badTask says what is wrong with a task, in one line.
type badTask struct{ field, reason string }

// Error implements error.
func (e *badTask) Error() string { return e.field + ": " + e.reason }

func bad(field, format string, args ...any) error {
	return &badTask{field, problem.OneLine(fmt.Sprintf(format, args...))}
}

// parse reads a task, whose fields of other versions and of the server are passed over, and checks it but for what only
// the job's own check knows.
func parse(body []byte) (t tesTask, err error) {
	if !utf8.Valid(body) {
		return t, bad("body", "is not UTF-8")
	}
	if err = checkShape(body); err != nil {
		return t, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err = dec.Decode(&t); err != nil {
		return t, wordJSON(err)
	}
	if _, err = dec.Token(); !errors.Is(err, io.EOF) {
		return t, bad("body", "has data after the task: send one JSON object")
	}
	t.ID, t.State, t.Logs, t.CreationTime = "", "", nil, ""
	for _, check := range []func(*tesTask) error{
		checkExecutors, checkInputs, checkOutputs, checkVolumes, checkResources, checkTags,
	} {
		if err = check(&t); err != nil {
			return t, err
		}
	}
	return t, nil
}

// wordJSON words what is wrong with a text.
func wordJSON(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return bad("body", "must be a JSON object, not %s", kind.Value)
	case errors.As(err, &kind):
		return bad(kind.Field, "must be %s, not %s", kindName(kind.Type.String()), kind.Value)
	case errors.As(err, &syntax):
		return bad("body", "is no JSON: %s at byte %d", syntax.Error(), syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return bad("body", "is no JSON: it ends too early")
	}
	return bad("body", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// kindName words a type of Go.
func kindName(kind string) string {
	switch {
	case kind == "string":
		return "a string"
	case kind == "bool":
		return "true or false"
	case kind == "int64":
		return "a whole number of at most 64 bits"
	case kind == "float64":
		return "a number"
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	}
	return "an object"
}

func checkExecutors(t *tesTask) error {
	switch {
	case len(t.Executors) == 0:
		return bad("executors", "is missing: give one with an image and a command")
	case len(t.Executors) > jobspec.MaxSteps:
		return bad("executors", "has %d: at most %d", len(t.Executors), jobspec.MaxSteps)
	}
	for i := range t.Executors {
		e, field := &t.Executors[i], fmt.Sprintf("executors.%d", i)
		switch {
		case e.Image == "":
			return bad(field+".image", "is missing")
		case e.Image != t.Executors[0].Image:
			return bad(field+".image", "is another one than that of executors.0: the executors of a task run in one "+
				"container here; make a task of each, or an image that has all programs")
		case len(e.Command) == 0 || e.Command[0] == "":
			return bad(field+".command", `is missing: give a program and its arguments, such as ["md5sum","/data/in"]`)
		}
		for n, arg := range e.Command {
			if strings.ContainsRune(arg, 0) {
				return bad(fmt.Sprintf("%s.command.%d", field, n), "must hold no NUL")
			}
		}
		if err := checkPlaces(field, e); err != nil {
			return err
		}
	}
	return nil
}

// checkPlaces checks where an executor works, and what it reads, writes and finds in its environment.
func checkPlaces(field string, e *tesExecutor) error {
	names, places := []string{"workdir", "stdin", "stdout", "stderr"}, []*string{&e.Workdir, &e.Stdin, &e.Stdout, &e.Stderr}
	for i, p := range places {
		if *p == "" {
			continue
		}
		if err := checkPath(field+"."+names[i], p); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.Env)) {
		if why := jobspec.CheckEnv(key, e.Env[key]); why != "" {
			return bad(fmt.Sprintf("%s.env.%.60s", field, key), "%s", why)
		}
	}
	return nil
}

// checkPath checks an absolute path of a container, and leaves a slash at its end away.
func checkPath(field string, p *string) error {
	switch text := *p; {
	case text == "":
		return bad(field, "is missing: an absolute path in the container")
	case !strings.HasPrefix(text, "/"):
		return bad(field, "%.100q is no absolute path: it names a place in the container", text)
	case len(text) > maxPathText:
		return bad(field, "has %d bytes: at most %d", len(text), maxPathText)
	case strings.ContainsFunc(text, jobspec.Unprintable):
		return bad(field, "must hold no control or formatting characters")
	}
	for name := range strings.SplitSeq(strings.TrimSuffix((*p)[1:], "/"), "/") {
		switch {
		case name == ".." || name == ".":
			return bad(field, "%.100q climbs: write it without . and ..", *p)
		case len(name) > 255:
			return bad(field, "holds a name of more than 255 bytes")
		}
	}
	*p = path.Clean(*p)
	return nil
}

// checkType sets the default of a type.
func checkType(field string, kind *string) error {
	switch *kind {
	case "":
		*kind = typeFile
	case typeFile, typeDirectory:
	default:
		return bad(field, "%.40q must be FILE or DIRECTORY", *kind)
	}
	return nil
}

func checkInputs(t *tesTask) error {
	if most := files.MaxInputs - 1; len(t.Inputs) > most {
		return bad("inputs", "has %d: at most %d; a DIRECTORY is one", len(t.Inputs), most)
	}
	for i := range t.Inputs {
		in, field := &t.Inputs[i], fmt.Sprintf("inputs.%d", i)
		if err := checkPath(field+".path", &in.Path); err != nil {
			return err
		}
		if in.Path == "/" {
			return bad(field+".path", "must not be the whole container")
		}
		if err := checkType(field+".type", &in.Type); err != nil {
			return err
		}
		switch hasContent := in.Content != nil && (*in.Content != "" || in.URL == ""); {
		case hasContent && in.Type == typeDirectory:
			return bad(field+".content", "is of a FILE: a DIRECTORY has a url")
		case !hasContent && in.URL == "":
			return bad(field+".url", "is missing, and content is")
		case !hasContent:
			in.Content = nil
		}
	}
	return nil
}

// wildcards are what a pattern has.
const wildcards = "*?["

func checkOutputs(t *tesTask) error {
	if len(t.Outputs) > maxOutputs {
		return bad("outputs", "has %d: at most %d; a DIRECTORY is one", len(t.Outputs), maxOutputs)
	}
	for i := range t.Outputs {
		o, field := &t.Outputs[i], fmt.Sprintf("outputs.%d", i)
		if err := checkPath(field+".path", &o.Path); err != nil {
			return err
		}
		if o.Path == "/" {
			return bad(field+".path", "must not be the whole container")
		}
		if err := checkType(field+".type", &o.Type); err != nil {
			return err
		}
		if o.URL == "" {
			return bad(field+".url", "is missing: where the file goes, such as file:///data/out.csv")
		}
		if err := checkPattern(field, o); err != nil {
			return err
		}
	}
	return nil
}

// checkPattern checks an output whose path has wildcards; of others the prefix has no meaning.
func checkPattern(field string, o *tesOutput) error {
	if !strings.ContainsAny(o.Path, wildcards) {
		return nil
	}
	if _, err := path.Match(goPattern(o.Path), ""); err != nil {
		return bad(field+".path", "%.100q is no pattern: a bracket is open", o.Path)
	}
	if err := checkPath(field+".path_prefix", &o.PathPrefix); err != nil {
		return err
	}
	if o.PathPrefix != "/" && !strings.HasPrefix(o.Path, o.PathPrefix+"/") || strings.ContainsAny(o.PathPrefix, wildcards) {
		return bad(field+".path_prefix", "%.100q must be a folder that path begins with, without wildcards", o.PathPrefix)
	}
	return nil
}

// goPattern returns a pattern as package path reads it: POSIX negates a bracket by !.
func goPattern(text string) string { return strings.ReplaceAll(text, "[!", "[^") }

func checkVolumes(t *tesTask) error {
	if len(t.Volumes) > maxVolumes {
		return bad("volumes", "has %d: at most %d", len(t.Volumes), maxVolumes)
	}
	for i := range t.Volumes {
		field := fmt.Sprintf("volumes.%d", i)
		if err := checkPath(field, &t.Volumes[i]); err != nil {
			return err
		}
		if t.Volumes[i] == "/" {
			return bad(field, "must not be the whole container")
		}
	}
	return nil
}

func checkResources(t *tesTask) error {
	r := t.Resources
	if r == nil {
		return nil
	}
	for i, v := range []*float64{r.RAM, r.Disk} {
		if v != nil && (*v < 0 || *v > maxGB) {
			return bad([]string{"resources.ram_gb", "resources.disk_gb"}[i], "%g must be from 0 to %d", *v, maxGB)
		}
	}
	if r.CPUCores != nil && *r.CPUCores < 0 {
		return bad("resources.cpu_cores", "%d must not be negative", *r.CPUCores)
	}
	return nil
}

func checkTags(t *tesTask) error {
	if len(t.Tags) > maxTags {
		return bad("tags", "has %d: at most %d", len(t.Tags), maxTags)
	}
	return nil
}
