package jobs

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
)

// maxAsked bounds a name in the record, in bytes.
const maxAsked = 80

// asked says what a refused job was to be, as far as its text can be read: its name, or its command's first word, and
// how many tasks it has. Arguments and environment, which may be secrets, are left out.
func asked(body []byte) string {
	var spec struct {
		Name    any `json:"name"`
		Command any `json:"command"`
		Image   any `json:"image"`
		Count   any `json:"count"`
	}
	if json.Unmarshal(body, &spec) != nil {
		return fmt.Sprintf("%d bytes that are no job", len(body))
	}
	words, _ := spec.Command.([]any)
	what := "a job without a name or command"
	switch {
	case isText(spec.Name):
		what = fmt.Sprintf("job %q", bounded(spec.Name))
	case len(words) > 0 && isText(words[0]):
		what = fmt.Sprintf("command %q", bounded(words[0]))
	case isText(spec.Image):
		what = fmt.Sprintf("image %q", bounded(spec.Image))
	}
	if n, ok := spec.Count.(float64); ok && n != 1 {
		return fmt.Sprintf("%s, %.0f tasks", what, n)
	}
	return what
}

// noteLine notes a refused line: how many there are, and why the first one is.
func noteLine(note *rest.Note, p *wire.Problem) {
	if note.Lines++; note.Lines > 1 {
		return
	}
	note.Refuse(p)
	note.Why = fmt.Sprintf("line %d: %s", p.Line, note.Why)
	note.Asked = func() string {
		return fmt.Sprintf("%d lines that were refused, among those of one request", note.Lines)
	}
}

func isText(v any) bool {
	text, ok := v.(string)
	return ok && text != ""
}

func bounded(v any) string {
	text, _ := v.(string)
	if len(text) > maxAsked {
		text = strings.ToValidUTF8(text[:maxAsked], "") + "…"
	}
	return problem.OneLine(text)
}
