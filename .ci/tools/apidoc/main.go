// Command apidoc validates an OpenAPI document and writes it as Markdown for
// people.
//
// Usage: apidoc [-write FILE | -check FILE] OPENAPI. Without a flag the text goes
// to stdout; -check fails if FILE is not what would be written.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/getkin/kin-openapi/openapi3"
)

func main() {
	write := flag.String("write", "", "write the text to this file")
	check := flag.String("check", "", "compare the text with this file")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *write, *check); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

func run(path, write, check string) error {
	doc, err := load(path)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	document(&text, doc)
	switch {
	case write != "":
		return os.WriteFile(write, text.Bytes(), 0o644)
	case check != "":
		old, err := os.ReadFile(check)
		if err != nil {
			return err
		}
		if !bytes.Equal(old, text.Bytes()) {
			return fmt.Errorf("%s is not what %s says: make docs, then read the change", check, path)
		}
		return nil
	}
	_, err = os.Stdout.Write(text.Bytes())
	return err
}

// load reads a document and holds it against the specification.
func load(path string) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableMultiError()); err != nil {
		return nil, fmt.Errorf("%s is no valid OpenAPI: %w", path, err)
	}
	return doc, nil
}
