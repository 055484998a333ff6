package jobcmd

import (
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// flagAfter names jobs to wait for.
const flagAfter = "after"

func afterFlag(f *pflag.FlagSet) {
	f.StringArray(flagAfter, nil, "begin when job `ID[:WHEN]` has ended: ok = succeeded (the default), any = in whatever way, notok = without success, each = task by task, when the task at the same place has succeeded (may be repeated)")
}

// afterGiven turns ID[:WHEN] into the form of a job's file; the broker judges the values.
func afterGiven(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		id, when, given := strings.Cut(text, ":")
		d := map[string]any{"job": id}
		if given {
			d["when"] = when
		}
		list = append(list, d)
	}
	return list
}

// afterWords names the jobs that a spec waits for.
func afterWords(list []wire.SpecAfter) string {
	var parts []string
	for _, d := range list {
		parts = append(parts, strings.TrimSuffix(d.Job+":"+d.When, ":ok"))
	}
	return strings.Join(parts, ", ")
}

// showAwaited shows what waits for a job.
func showAwaited(w io.Writer, by *wire.AwaitedBy) {
	if by == nil {
		return
	}
	const most = 10
	text := strings.Join(by.Jobs[:min(len(by.Jobs), most)], ", ")
	switch more := int64(by.Count - min(len(by.Jobs), most)); {
	case text == "": // none of them is the asker's
		text = cli.Plural(more, "job")
	case more > 0:
		text += " and " + cli.Plural(more, "other")
	}
	cli.Row(w, "awaited by", text)
}
