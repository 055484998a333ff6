package jobcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// mostInputs is how many inputs a job's page names.
const mostInputs = 10

// inputWords says what a job's tasks find when they begin.
func inputWords(list []wire.SpecInput) (words []string) {
	for i, in := range list {
		if i == mostInputs {
			return append(words, fmt.Sprintf("%d more", len(list)-i))
		}
		text := in.Path
		switch {
		case in.Manifest != "":
			text += "/"
		case in.Each != "":
			text += " (one for each task)"
		case in.URL != "":
			text += " (from " + in.URL + ")"
		case in.Size != nil:
			text += fmt.Sprintf(" (%s)", cli.Bytes(*in.Size))
		}
		words = append(words, text)
	}
	return words
}

// outputWords says what they are to leave.
func outputWords(o *wire.SpecOutputs) string {
	if o == nil {
		return ""
	}
	globs := slices.Clone(o.Paths)
	for _, glob := range o.Optional {
		globs = append(globs, glob+" (if there)")
	}
	text := strings.Join(globs, ", ") + "; at most " + o.Max
	if o.When != "" && o.When != "always" {
		text += "; after success only"
	}
	return text
}
