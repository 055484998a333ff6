package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// future is what a package comment must not promise: it describes today.
var future = regexp.MustCompile(`(?i)\b(later|not yet|for now|planned)\b`)

// docFaults checks the comments before a file's package clause and declarations.
func docFaults(fset *token.FileSet, f *ast.File) []string {
	var faults []string
	add := func(at token.Pos, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: ", fset.Position(at))+fmt.Sprintf(format, args...))
	}
	if found := future.FindString(f.Doc.Text()); found != "" {
		add(f.Doc.Pos(), "the package comment says %q: describe what there is today", found)
	}
	for _, d := range f.Decls {
		doc, name := documented(d)
		if text := doc.Text(); text != "" && !beginsWith(text, name) {
			add(doc.Pos(), "the comment of %s begins with another word: begin with the name and a verb", name)
		}
		if fn, ok := d.(*ast.FuncDecl); ok && isPredicate(fn.Type) && saysWhether.MatchString(doc.Text()) {
			add(doc.Pos(), "%s is a predicate: its comment says \"reports whether\"", name)
		}
	}
	return faults
}

// documented returns the comment of a declaration of one name, and the name.
func documented(d ast.Decl) (*ast.CommentGroup, string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Doc, d.Name.Name
	case *ast.GenDecl:
		if d.Lparen.IsValid() {
			return nil, ""
		}
		switch s := d.Specs[0].(type) {
		case *ast.TypeSpec:
			return d.Doc, s.Name.Name
		case *ast.ValueSpec:
			return d.Doc, s.Names[0].Name
		}
	}
	return nil, ""
}

// beginsWith reports whether a comment begins with a name. One that only states the lock
// that must be held needs none, nor does one of a blank variable.
func beginsWith(text, name string) bool {
	rest, ok := strings.CutPrefix(text, name)
	return ok && !isLetter(rest) || name == "_" || strings.HasPrefix(text, "REQUIRES: ")
}

func isLetter(rest string) bool { return regexp.MustCompile(`^[0-9A-Za-z_]`).MatchString(rest) }

// saysWhether is how a predicate's comment should not begin.
var saysWhether = regexp.MustCompile(`^\w+ (says|tells|is) (whether|that)\b`)

// isPredicate reports whether a function's only result is a bool.
func isPredicate(t *ast.FuncType) bool {
	if t.Results == nil || len(t.Results.List) != 1 || len(t.Results.List[0].Names) > 1 {
		return false
	}
	id, ok := t.Results.List[0].Type.(*ast.Ident)
	return ok && id.Name == "bool"
}
