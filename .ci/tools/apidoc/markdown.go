package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// preface says what no route says.
const preface = `# HTTP API

<!-- Written by "make docs" from api/testdata/openapi.json; make lint compares. -->

Any language that speaks HTTP and JSON can use a broker; for Go there is [api/client](../../../api/client/client.go). Every broker
answers for the whole federation: a question about another site's job is passed on, never redirected. A running broker
serves this reference for machines at ` + "`/openapi.json`" + ` and for people at ` + "`/docs`" + `.

What holds everywhere:

- **Errors** are ` + "`application/problem+json`" + ` (RFC 9457) with a stable ` + "`type`, `title`, `status` and `detail`" + `. 400 is no JSON or a wrong
  query, 422 is JSON that is no valid job, 404 no such thing, 409 too late, 413 too large, 415 the wrong type, 429 and 503 come with
  ` + "`Retry-After`" + `. Unknown fields and unknown query parameters are errors.
- **X-CloudShare-Index** is the number of the last log entry that the answering broker had applied. A write is answered when it is
  applied there, so a read after it at the same broker sees it.
- **Lists** are ` + "`{\"items\": [], \"next\": \"\"}`" + `; a ` + "`next`" + ` that is not empty is the ` + "`cursor`" + ` of the next page, at the same broker (400 bad-cursor at another).
  A page may be shorter than its ` + "`limit`" + `: about 1 MiB of specs ends one of jobs.
- **Blocking reads**: with ` + "`index` and `wait`" + ` a read answers when something changed after that index, or the time is over.
- **It stays.** Routes, fields, states and problem types are added to; what would break a client is said in the
  [CHANGELOG](../../../CHANGELOG.md).
- Bodies have at most 1 MiB, NDJSON at most 64 MiB with lines of at most 1 MiB.
- Sizes are written ` + "`256Mi`, durations `90s`" + `; sums of the ledger are decimal strings in the unit that they name.
- Whatever changes something is refused if a browser sends it from a page of another origin.
`

// document writes the routes by path, then the schemas by name.
func document(w io.Writer, doc *openapi3.T) {
	fmt.Fprint(w, preface)
	fmt.Fprint(w, "\n## Routes\n\n| | |\n|---|---|\n")
	eachOperation(doc, func(method, path string, op *openapi3.Operation) {
		fmt.Fprintf(w, "| [`%s %s`](#%s) | %s |\n", method, path, anchor(method+" "+path), op.Summary)
	})
	eachOperation(doc, func(method, path string, op *openapi3.Operation) { operation(w, method, path, op) })
	fmt.Fprint(w, "\n## Schemas\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		schema(w, name, doc.Components.Schemas[name].Value)
	}
}

// eachOperation goes by path and method, probes and documents last.
func eachOperation(doc *openapi3.T, do func(method, path string, op *openapi3.Operation)) {
	paths := doc.Paths.Map()
	order := slices.SortedFunc(maps.Keys(paths), func(a, b string) int {
		return cmp.Or(cmp.Compare(btoi(!strings.HasPrefix(a, "/v1/")), btoi(!strings.HasPrefix(b, "/v1/"))), cmp.Compare(a, b))
	})
	for _, path := range order {
		ops := paths[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(ops)) {
			do(method, path, ops[method])
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// anchor is the one that a heading gets on common hosts.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return -1
	}, heading)
}

func operation(w io.Writer, method, path string, op *openapi3.Operation) {
	fmt.Fprintf(w, "\n### `%s %s`\n\n%s.", method, path, op.Summary)
	if op.Description != "" {
		fmt.Fprintf(w, " %s", op.Description)
	}
	fmt.Fprint(w, "\n")
	if len(op.Parameters) > 0 {
		fmt.Fprint(w, "\n| parameter | in | type | |\n|---|---|---|---|\n")
		for _, p := range op.Parameters {
			fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", p.Value.Name, p.Value.In, typeOf(p.Value.Schema),
				bounds(p.Value.Schema.Value, p.Value.Description))
		}
	}
	if op.RequestBody != nil {
		fmt.Fprint(w, "\nTakes ", contents(op.RequestBody.Value.Content), ".\n")
	}
	fmt.Fprint(w, "\nAnswers ")
	answers(w, op.Responses.Map())
}

// answers names the good ones with what they hold and the others by number.
func answers(w io.Writer, all map[string]*openapi3.ResponseRef) {
	var refused []string
	for _, code := range slices.Sorted(maps.Keys(all)) {
		if code >= "400" {
			refused = append(refused, code)
			continue
		}
		fmt.Fprintf(w, "%s with %s; ", code, contents(all[code].Value.Content))
	}
	if len(refused) == 0 {
		fmt.Fprint(w, "nothing else.\n")
		return
	}
	fmt.Fprintf(w, "else %s.\n", strings.Join(refused, ", "))
}

func contents(c openapi3.Content) string {
	var out []string
	for _, media := range slices.Sorted(maps.Keys(c)) {
		text := "`" + media + "`"
		if s := c[media].Schema; s != nil && s.Ref != "" {
			text += " of " + typeOf(s)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "no body"
	}
	return strings.Join(out, " or ")
}

func schema(w io.Writer, name string, s *openapi3.Schema) {
	fmt.Fprintf(w, "\n### %s\n", name)
	if s.Description != "" {
		fmt.Fprintf(w, "\n%s\n", s.Description)
	}
	if len(s.Properties) == 0 {
		fmt.Fprintf(w, "\n%s\n", typeOf(&openapi3.SchemaRef{Value: s}))
		return
	}
	fmt.Fprint(w, "\n| field | type | |\n|---|---|---|\n")
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", field, typeOf(p), bounds(p.Value, p.Value.Description))
	}
}

// typeOf words a type, with a link to a schema that has a name.
func typeOf(ref *openapi3.SchemaRef) string {
	if ref.Ref != "" {
		name := ref.Ref[strings.LastIndexByte(ref.Ref, '/')+1:]
		return fmt.Sprintf("[%s](#%s)", name, anchor(name))
	}
	s := ref.Value
	if s.Type == nil {
		return "any"
	}
	var words []string
	for _, t := range s.Type.Slice() {
		switch {
		case t == "array" && s.Items != nil:
			t = "list of " + typeOf(s.Items)
		case t == "object" && s.AdditionalProperties.Schema != nil:
			t = "object of " + typeOf(s.AdditionalProperties.Schema)
		case t == "string" && s.Format != "":
			t = s.Format
		}
		words = append(words, t)
	}
	return strings.Join(words, " or ")
}

// bounds adds to a description what a value may be.
func bounds(s *openapi3.Schema, text string) string {
	var more []string
	if len(s.Enum) > 0 {
		var words []string
		for _, v := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", v))
		}
		more = append(more, strings.Join(words, ", "))
	}
	if s.Min != nil && s.Max != nil {
		more = append(more, fmt.Sprintf("%v to %v", *s.Min, *s.Max))
	}
	if s.Default != nil {
		more = append(more, fmt.Sprintf("default `%v`", s.Default))
	}
	if len(more) > 0 && text != "" {
		text += "; "
	}
	return strings.ReplaceAll(text+strings.Join(more, "; "), "|", `\|`)
}
