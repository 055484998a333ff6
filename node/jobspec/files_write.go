package jobspec

import (
	"strconv"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/files"
)

// appendInputs writes inputs in canonical form, in their order; what the broker has found out of them, too.
func appendInputs(b []byte, list []Input) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInput(b, &list[i])
	}
	return append(b, ']')
}

// hashFields are the fields of an input's hash.
var hashFields = [...]string{
	FromFile: "sha256", FromDirectory: "manifest", FromEach: "each", FromContent: "", FromURL: "sha256",
}

func appendInput(b []byte, in *Input) []byte {
	w := beginText(b)
	w.field("path")
	w.b = appendString(w.b, in.Path)
	if in.From == FromURL {
		w.field("url")
		w.b = appendString(w.b, in.URL)
	}
	if in.From == FromContent {
		w.field("content")
		w.b = appendString(w.b, string(in.Content))
	} else if in.Blob.Hash != (files.Hash{}) {
		w.field(hashFields[in.From])
		w.b = appendString(w.b, in.Blob.Hash.String())
		if in.Blob.Size != UnknownSize {
			w.field("size")
			w.b = strconv.AppendInt(w.b, in.Blob.Size, 10)
		}
	}
	if in.Executable {
		w.field("executable")
		w.b = append(w.b, "true"...)
	}
	return w.end()
}

func appendOutputs(b []byte, o *Outputs) []byte {
	w := beginText(b)
	if len(o.Paths) > 0 {
		w.field("paths")
		w.b = appendStrings(w.b, o.Paths)
	}
	if len(o.Optional) > 0 {
		w.field("optional")
		w.b = appendStrings(w.b, o.Optional)
	}
	w.field("max")
	w.b = appendString(w.b, FormatBytes(o.MaxBytes))
	if o.When != executor.WhenAlways {
		w.field("when")
		w.b = appendString(w.b, o.WhenName())
	}
	return w.end()
}
