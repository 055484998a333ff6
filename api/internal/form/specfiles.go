package form

import (
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// inputsOf returns the form of a job's inputs, nil if it has none.
func inputsOf(list []jobspec.Input) []wire.SpecInput {
	var out []wire.SpecInput
	for i := range list {
		out = append(out, inputOf(&list[i]))
	}
	return out
}

func inputOf(in *jobspec.Input) wire.SpecInput {
	out := wire.SpecInput{Path: in.Path, URL: in.URL, Executable: in.Executable}
	if in.From == jobspec.FromContent {
		text := string(in.Content)
		out.Content = &text
		return out
	}
	hash := in.HashText()
	switch in.From {
	case jobspec.FromDirectory:
		out.Manifest = hash
	case jobspec.FromEach:
		out.Each = hash
	case jobspec.FromFile, jobspec.FromURL, jobspec.FromContent:
		out.SHA256 = hash
	}
	if size := in.Blob.Size; hash != "" && size != jobspec.UnknownSize {
		out.Size = &size
	}
	return out
}

// outputsOf returns the form of what a job's tasks are to leave, nil if that is nothing.
func outputsOf(o *jobspec.Outputs) *wire.SpecOutputs {
	if !o.Wanted() {
		return nil
	}
	return &wire.SpecOutputs{
		Paths: o.Paths, Optional: o.Optional, Max: jobspec.FormatBytes(o.MaxBytes), When: o.WhenName(),
	}
}
