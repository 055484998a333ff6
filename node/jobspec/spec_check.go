package jobspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/files"
)

// maxDepth bounds the nesting of a value that is skipped before it is refused.
const maxDepth = 64

// skip reads a value of any type, to tell a wrong type from malformed text.
func (p *jsonScanner) skip(depth int) error {
	if depth > maxDepth {
		return p.malformed("nested too deeply")
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(func(string) error { return p.skip(depth + 1) })
	case c == '[':
		return p.array(func() error { return p.skip(depth + 1) })
	case c == '"':
		_, err := p.str()
		return err
	case c == '-' || '0' <= c && c <= '9':
		_, _, err := p.number()
		return err
	}
	for _, word := range []string{"null", "true", "false"} {
		if strings.HasPrefix(p.src[p.pos:], word) {
			p.pos += len(word)
			return nil
		}
	}
	return p.malformed("expected a JSON value")
}

// check checks a parsed spec as a whole.
func (p *specParser) check() error {
	s := &p.spec
	if len(s.Command) == 0 && s.Image == "" {
		return &SpecError{Field: "command", Reason: `is missing; give a command such as ["sleep","1"], or an image`}
	}
	for i, arg := range s.Command {
		if strings.IndexByte(arg, 0) >= 0 {
			return &SpecError{Field: fmt.Sprintf("command.%d", i), Value: quoted(arg), Reason: "must not hold a NUL byte"}
		}
	}
	if len(s.Command) > 0 && s.Command[0] == "" {
		return &SpecError{Field: "command.0", Reason: "must name a program"}
	}
	for _, f := range []struct{ name, value string }{{"name", s.Name}, {"image", s.Image}} {
		if len(f.value) > MaxLabelText || !printable(f.value) {
			return &SpecError{Field: f.name, Value: quoted(f.value), Reason: fmt.Sprintf(
				"must have at most %d bytes and no control or formatting characters", MaxLabelText)}
		}
	}
	if s.Image != "" {
		if _, err := executor.ParseImage(s.Image); err != nil {
			return &SpecError{Field: "image", Value: quoted(s.Image), Reason: "is " + err.Error()}
		}
	}
	if len(s.Labels) > MaxLabels {
		return &SpecError{Field: "labels", Reason: fmt.Sprintf("has %d labels; at most %d", len(s.Labels), MaxLabels)}
	}
	if err := p.checkIndices(); err != nil {
		return err
	}
	for _, site := range s.Sites.Only {
		if slices.Contains(s.Sites.Not, site) {
			return &SpecError{Field: "sites", Value: quoted(site), Reason: "must not name a site in both only and not"}
		}
	}
	if implied := s.impliedSelectors(); len(s.Selectors)+implied > command.MaxSelectors {
		return &SpecError{Field: "selectors", Reason: fmt.Sprintf("has %d selectors; at most %d here: "+
			"network counts as one, and files do", len(s.Selectors), command.MaxSelectors-implied)}
	}
	if err := p.checkRetry(); err != nil {
		return err
	}
	if err := s.checkFiles(); err != nil {
		return err
	}
	if err := p.checkCounted(); err != nil {
		return err
	}
	return p.checkSize()
}

// impliedSelectors returns how many JobSpec adds.
func (s *Spec) impliedSelectors() (n int) {
	if s.Network {
		n++
	}
	if s.HasFiles() {
		n++
	}
	return n
}

// checkCounted refuses inputs of which each task gets one if the job does not say how many tasks it has: that there are
// as many files says only their manifest, which is not here.
func (p *specParser) checkCounted() error {
	i := slices.IndexFunc(p.spec.Inputs, func(in Input) bool { return in.From == FromEach })
	if i < 0 || p.saw("count") || p.spec.Indices.Len() > 0 {
		return nil
	}
	return &SpecError{Field: fmt.Sprintf("inputs.%d.each", i), Reason: "needs count, as many as there are files, or indices"}
}

// saw reports whether the text has a field of a job.
func (p *specParser) saw(field string) bool { return p.seen&fieldBits(field) != 0 }

// checkIndices sets the count to that of the indices.
func (p *specParser) checkIndices() error {
	n := p.spec.Indices.Len()
	if n == 0 {
		return nil
	}
	if p.saw("count") && p.spec.Count != n {
		tasks := "tasks"
		if n == 1 {
			tasks = "task"
		}
		return &SpecError{
			Field: "count", Value: fmt.Sprint(p.spec.Count),
			Reason: fmt.Sprintf("must be left out beside indices, which name %d %s", n, tasks),
		}
	}
	p.spec.Count = n
	return nil
}

// checkSize bounds what every site holds of the job. Canonical text is at most six times as long as
// its source ("\u0001" for one byte is the worst case, and only if the source did not escape it), so
// most specs need not be encoded for this.
func (p *specParser) checkSize() error {
	if len(p.src) <= maxTexts/6 {
		return nil
	}
	return p.spec.CheckSize()
}

// maxTexts bounds both texts of a payload: SealedBytes is what sealing adds.
const (
	SealedBytes = 65
	maxTexts    = command.MaxPayload - SealedBytes
)

// CheckSize refuses a spec whose payload, or files, would be too large; the error is a *SpecError.
func (s Spec) CheckSize() error {
	if n := len(s.appendSealed(s.publicText())); n > maxTexts {
		return &SpecError{Field: "body", Reason: fmt.Sprintf("command, env, labels, indices, image, name, inputs, "+
			"outputs and after take %d bytes together; at most %d: put large data into a file", n, maxTexts)}
	}
	if s.FileBytes > files.MaxTask-s.Outputs.MaxBytes {
		return &SpecError{Field: "inputs", Reason: fmt.Sprintf("have %d bytes, and outputs may have %d; at most %d together",
			s.FileBytes, s.Outputs.MaxBytes, int64(files.MaxTask))}
	}
	return nil
}

// taskEnv are the names of the variables that the executor sets for each task.
var taskEnv = []string{
	"CLOUDSHARE_JOB", "CLOUDSHARE_TASK", "CLOUDSHARE_ATTEMPT", "CLOUDSHARE_TOKEN", "CLOUDSHARE_SITE",
	"CLOUDSHARE_OWNER", "CLOUDSHARE_WORKDIR",
}

func checkEnv(key, value string) string {
	switch {
	case key == "" || strings.ContainsAny(key, "=\x00"):
		return "must have a name without '=' and NUL"
	case strings.IndexByte(value, 0) >= 0:
		return "must not hold a NUL byte"
	case slices.Contains(taskEnv, key):
		return "is set by CloudShare for every task; choose another name"
	}
	return ""
}

func checkLabel(key, value string) string {
	if !validLabelKey(key) {
		return fmt.Sprintf("must have a name of 1 to %d letters, digits, '.', '_', '-' or '/'", MaxLabelKey)
	}
	if len(value) > MaxLabelText || !printable(value) {
		return fmt.Sprintf("must have at most %d bytes and no control or formatting characters", MaxLabelText)
	}
	return ""
}

func validLabelKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("._-/", c) < 0 {
			return false
		}
	}
	return key != "" && len(key) <= MaxLabelKey
}

// printable reports whether s has no Unprintable character.
func printable(s string) bool { return strings.IndexFunc(s, Unprintable) < 0 }

// Unprintable reports whether r is a control character, or one that shows nothing but changes how
// others are shown: after U+202E text reads backwards.
func Unprintable(r rune) bool {
	return r < 0x20 || 0x7f <= r && r < 0xa0 || r >= 0xa0 && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// shorten cuts text to what fits into an error of one line.
func shorten(s string) string {
	const most = 60
	if len(s) <= most && printable(s) {
		return s
	}
	cut := min(len(s), most)
	for cut > 0 && cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut--
	}
	tail := ""
	if cut < len(s) {
		tail = "…"
	}
	quoted := strconv.Quote(s[:cut])
	return quoted[1:len(quoted)-1] + tail
}

func quoted(s string) string { return `"` + shorten(s) + `"` }
