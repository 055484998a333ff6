package jobcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/filesend"
)

// sending is what is to be sent before jobs are submitted. The zero value but for app is nothing.
type sending struct {
	app    *cli.App
	sender *filesend.Sender // nil = no file is to be sent
	urls   []urlInput
	more   []filesend.Source // that a script's directives name
	script *scriptFile       // that the job runs; nil = none
}

// begin returns what sends.
func (s *sending) begin() (*filesend.Sender, error) {
	if s.sender == nil {
		c, err := s.app.Client()
		if err != nil {
			return nil, err
		}
		s.sender = filesend.New(c, newTransferBar(s.app), s.app.Note)
	}
	return s.sender, nil
}

// prepare reads files; what is wrong with them is what was typed.
func (s *sending) prepare(ctx context.Context, sources []filesend.Source) ([]wire.SpecInput, int, error) {
	sender, err := s.begin()
	if err != nil {
		return nil, 0, err
	}
	inputs, tasks, err := sender.Prepare(ctx, sources)
	if err != nil && ctx.Err() == nil && !errors.Is(err, filesend.ErrChanged) {
		err = cli.Usage("%w", err)
	}
	return inputs, tasks, err
}

// fromFile returns a job of a file with what the local files are that its inputs name; they stand relative to dir.
// A job that names none is untouched.
func (s *sending) fromFile(ctx context.Context, spec []byte, dir string) ([]byte, error) {
	var job specInputs
	if json.Unmarshal(spec, &job) != nil {
		return spec, nil //nolint:nilerr // the broker says what is wrong with it
	}
	local := false
	for i, in := range job.Inputs {
		var from urlInput
		if _, ok := in["url"]; ok && remarshal(in, &from) == nil {
			s.urls = append(s.urls, from)
		}
		if _, ok := in["file"]; !ok {
			continue
		}
		made, err := s.localInput(ctx, in, dir)
		if err != nil {
			return nil, fmt.Errorf("inputs.%d: %w", i, err)
		}
		job.Inputs[i], local = made, true
	}
	if !local {
		return spec, nil
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(spec, &whole); err != nil {
		return nil, err
	}
	inputs, err := json.Marshal(job.Inputs)
	if err != nil {
		return nil, err
	}
	whole["inputs"] = inputs
	return json.Marshal(whole)
}

// localInput returns an input with a hash in the place of the file that it names. What else it says stays.
func (s *sending) localInput(
	ctx context.Context, in map[string]json.RawMessage, dir string,
) (map[string]json.RawMessage, error) {
	var given struct {
		Path string `json:"path"`
		File string `json:"file"`
	}
	err := remarshal(in, &given)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "path":
		return nil, cli.Usage("path must be a text, the name that tasks find the file under")
	case err != nil || given.File == "":
		return nil, cli.Usage("file must name a file of this machine")
	}
	if !filepath.IsAbs(given.File) {
		given.File = filepath.Join(dir, given.File)
	}
	src := filesend.Source{Local: given.File, Path: given.Path}
	if src.Path == "" {
		src.Path = filepath.Base(given.File)
	}
	inputs, _, err := s.prepare(ctx, []filesend.Source{src})
	if err != nil {
		return nil, err
	}
	made := map[string]json.RawMessage{}
	if err := remarshal(inputs[0], &made); err != nil {
		return nil, err
	}
	delete(in, "file")
	for key, value := range in {
		made[key] = value
	}
	return made, nil
}

// remarshal reads what JSON says of one value into another.
func remarshal(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// send sends all that the broker lacks, and has it fetch what is elsewhere.
func (s *sending) send(ctx context.Context) error {
	if s.sender == nil && len(s.urls) == 0 {
		return nil
	}
	sender, err := s.begin()
	if err != nil {
		return err
	}
	for _, from := range s.urls {
		if err = sender.Import(ctx, from.URL, from.SHA256); err != nil {
			return err
		}
	}
	sent, err := sender.Send(ctx)
	if err == nil && sent > 0 {
		s.app.Note("sent %s", cli.Bytes(sent))
	}
	return err
}
