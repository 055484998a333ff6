package jobspec

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/files"
)

// MaxURL bounds the URL of an input, in bytes.
const MaxURL = 2048

// inputFields are the names of an input's fields. The first ones, up to "content", say what it is made of: it has
// exactly one of them, but a sha256 may stand beside a URL.
var inputFields = [...]string{"sha256", "manifest", "each", "url", "content", "path", "size", "executable"}

// The fields by their bit.
const (
	hasHash = 1 << iota
	hasManifest
	hasEach
	hasURL
	hasContent
	hasPath
	hasSize
	hasExecutable
)

// sources are what an input is made of, by its fields that say so.
var sources = map[uint32]InputFrom{
	hasHash: FromFile, hasManifest: FromDirectory, hasEach: FromEach, hasURL: FromURL, hasURL | hasHash: FromURL,
	hasContent: FromContent,
}

// readInput is an input that is being read.
type readInput struct {
	Input
	field string // "inputs.3."
	seen  uint32
}

// inputs reads the list of inputs.
func (p *specParser) inputs(name string) error {
	if p.null() {
		return nil
	}
	if p.peek() != '[' {
		return p.wrong(name, "a list of objects")
	}
	return p.array(func() error {
		n := len(p.spec.Inputs)
		if n == files.MaxInputs {
			return &SpecError{Field: name, Reason: fmt.Sprintf(
				"has more than %d: a directory is one input, and so is one file for each task", files.MaxInputs)}
		}
		p.in = &readInput{field: fmt.Sprintf("%s.%d.", name, n)}
		p.in.Blob.Size = UnknownSize
		if p.peek() != '{' {
			return p.wrong(p.in.whole(), "an object")
		}
		if err := p.object(p.input); err != nil {
			return err
		}
		err := p.in.finish()
		p.spec.Inputs = append(p.spec.Inputs, p.in.Input)
		return err
	})
}

// whole returns the name of the input itself.
func (in *readInput) whole() string { return in.field[:len(in.field)-1] }

// input reads the value of one field. null is as if the field were not there.
func (p *specParser) input(key string) error {
	in := p.in
	if key == "file" {
		return &SpecError{Field: in.field + key, Reason: "names a file of the machine where the command runs: " +
			"cloudshare submit --file sends it; a broker is given its sha256, once it has been sent (PUT /v1/blobs)"}
	}
	bit, err := knownIn(inputFields[:], in.seen, in.field, key)
	if err != nil {
		err = withFile(err)
	}
	if err != nil || p.null() {
		return err
	}
	in.seen |= bit
	name := in.field + key
	switch bit {
	case hasPath:
		return p.text(name, &in.Path)
	case hasHash, hasManifest, hasEach:
		return p.hash(name, &in.Blob.Hash)
	case hasURL:
		return p.url(name, &in.URL)
	case hasContent:
		var text string
		err := p.text(name, &text)
		in.Content = []byte(text)
		return err
	case hasSize:
		return integer(p, name, &in.Blob.Size, 0, files.MaxFile)
	default:
		return p.boolean(name, &in.Executable)
	}
}

// withFile adds to the fields that are known the one that only the command knows.
func withFile(err error) error {
	var wrong *SpecError
	if errors.As(err, &wrong) && !wrong.Malformed {
		wrong.Reason += "; and file in what cloudshare submit --file reads"
	}
	return err
}

// finish checks that an input's fields go together.
func (in *readInput) finish() error {
	const made = hasHash | hasManifest | hasEach | hasURL | hasContent
	from, ok := sources[in.seen&made]
	if in.From = from; !ok {
		return &SpecError{Field: in.whole(), Reason: "must have one of sha256, manifest, each, url and content " +
			"(sha256 may stand beside url)"}
	}
	manifest := from == FromDirectory || from == FromEach
	switch {
	case in.seen&hasPath == 0:
		return &SpecError{Field: in.field + "path", Reason: "is missing: where the tasks find it"}
	case manifest && in.Executable:
		return &SpecError{Field: in.field + "executable", Reason: "is of one file: a manifest says it of each of its own"}
	case in.seen&hasSize != 0 && from == FromContent, in.seen&hasSize != 0 && from == FromURL && in.seen&hasHash == 0:
		return &SpecError{Field: in.field + "size", Reason: "goes with a hash: leave it out"}
	case manifest && in.Blob.Size > files.MaxManifest:
		return &SpecError{Field: in.field + "size", Value: fmt.Sprint(in.Blob.Size), Reason: fmt.Sprintf(
			"must be at most %d: a manifest has no more bytes", int64(files.MaxManifest))}
	case from == FromContent:
		in.Blob.Size = int64(len(in.Content))
	}
	return nil
}

// hash reads a SHA-256; that of zeros only stands for none.
func (p *specParser) hash(name string, to *files.Hash) error {
	var text string
	if err := p.text(name, &text); err != nil {
		return err
	}
	h, err := files.ParseHash(text)
	if err != nil || h == (files.Hash{}) {
		return &SpecError{Field: name, Value: quoted(text), Reason: "must be a SHA-256: 64 digits of 0-9a-f, as sha256sum prints it"}
	}
	*to = h
	return nil
}

// url reads the URL of a file.
func (p *specParser) url(name string, to *string) error {
	if err := p.text(name, to); err != nil {
		return err
	}
	if why := checkURL(*to); why != "" {
		return &SpecError{Field: name, Value: quoted(*to), Reason: why}
	}
	return nil
}

// checkURL says why a text is not the URL of an input.
func checkURL(text string) string {
	if len(text) > MaxURL || !printable(text) {
		return fmt.Sprintf("must have at most %d bytes and no control or formatting characters", MaxURL)
	}
	if strings.HasPrefix(text, files.ObjectScheme) {
		return checkObject(text)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return "must be a URL such as https://host/path or s3://bucket/key: no other scheme is fetched"
	case u.User != nil:
		return "must hold no name and password: every site that runs the job reads it"
	case u.Fragment != "":
		return "must have no #fragment: it names no file"
	}
	return ""
}

// checkObject says why a text is not the name of an object.
func checkObject(text string) string {
	if _, err := files.ParseObject(text); err != nil {
		return err.Error()
	}
	return ""
}

// checkFiles checks the places of a spec's inputs together.
func (s *Spec) checkFiles() error {
	if len(s.Inputs) == 0 {
		return nil
	}
	for i := range s.Inputs {
		if err := executor.CheckPath(s.Inputs[i].Path, s.Image != ""); err != nil {
			return pathError(i, err.Error())
		}
	}
	return s.checkApart()
}

// pathError says what is wrong with the place of an input.
func pathError(i int, reason string) error {
	return &SpecError{Field: fmt.Sprintf("inputs.%d.path", i), Reason: reason}
}
