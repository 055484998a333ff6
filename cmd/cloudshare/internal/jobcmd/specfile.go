package jobcmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// maxFile bounds a job file, in bytes: the API's bound of a request.
const maxFile = 64 << 20

// readSpecs reads the jobs of a file, each as JSON on one line.
func readSpecs(a *cli.App, name string) ([][]byte, error) {
	in := a.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.Usage("read job: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read job from %s: %w", name, err)
	}
	if len(text) > maxFile {
		return nil, cli.Usage("%s has more than %d bytes", name, maxFile)
	}
	specs, err := splitSpecs(text)
	if err != nil {
		return nil, cli.Usage("%s: %w", name, err)
	}
	return specs, nil
}

// splitSpecs takes a text that begins with "{" as JSON, whose values go to the
// broker untouched, and anything else as YAML.
func splitSpecs(text []byte) ([][]byte, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		return splitJSON(trimmed)
	}
	var specs [][]byte
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return specs, nil
		}
		if err != nil {
			return nil, errors.New(strings.Join(strings.Fields(err.Error()), " ")) // it has lines
		}
		if doc == nil { // an empty document
			continue
		}
		spec, err := marshalSpec(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d is no job: %w", len(specs)+1, err)
		}
		specs = append(specs, spec)
	}
}

// marshalSpec writes a job as JSON. What is no text is refused: json would put other
// characters in its place, and another command would run.
func marshalSpec(v any) ([]byte, error) {
	if err := onlyText(v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// onlyText refuses texts, wherever they stand in v, that are not UTF-8.
func onlyText(v any) (bad error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("%q is not UTF-8, and a job is text: have its own shell make such bytes", v)
		}
	case []string:
		return onlyText(strings.Join(v, " "))
	case map[string]string:
		for k, text := range v {
			bad = cmp.Or(bad, onlyText(k+"="+text))
		}
	case []any:
		for _, x := range v {
			bad = cmp.Or(bad, onlyText(x))
		}
	case map[string]any:
		for k, x := range v {
			bad = cmp.Or(bad, onlyText(k), onlyText(x))
		}
	}
	return bad
}

func splitJSON(text []byte) ([][]byte, error) {
	var specs [][]byte
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return specs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("after %d jobs: %w", len(specs), err)
		}
		var line bytes.Buffer
		if err := json.Compact(&line, raw); err != nil {
			return nil, err
		}
		specs = append(specs, line.Bytes())
	}
}

// lines joins jobs to NDJSON.
func lines(specs [][]byte) io.Reader {
	return bytes.NewReader(append(bytes.Join(specs, []byte("\n")), '\n'))
}
