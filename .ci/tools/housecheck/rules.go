package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLines is the length above which a file is to be cut by subject.
const maxLines = 600

// machinePaths are folders of one machine, written in two halves, so that this file passes its own check.
var machinePaths = []string{"/wor" + "k/", "/roo" + "t/", "/hom" + "e/", "/User" + "s/"}

// check returns one line per fault, sorted.
func check(root string, files []string) []string {
	var faults []string
	docs := map[string]bool{} // package folder → has a doc comment
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		faults = append(faults, textFaults(name, data)...)
		faults = append(faults, wordFaults(name, data)...)
		faults = append(faults, proseFaults(name, data)...)
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			doc, more := goFaults(name, data)
			docs[filepath.Dir(name)] = docs[filepath.Dir(name)] || doc
			faults = append(faults, more...)
		}
	}
	for dir, ok := range docs {
		if !ok {
			faults = append(faults, dir+": no package comment: say its step in a job's way")
		}
	}
	slices.Sort(faults)
	return faults
}

// textFaults looks at any text file.
func textFaults(name string, data []byte) []string {
	if bytes.IndexByte(data, 0) >= 0 {
		return nil
	}
	var faults []string
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		for _, p := range machinePaths {
			if strings.Contains(text, p) {
				faults = append(faults, fmt.Sprintf("%s:%d: path of one machine (%s)", name, line, p))
			}
		}
	}
	isTest := strings.HasSuffix(name, "_test.go")
	if strings.HasSuffix(name, ".go") && !isTest && line > maxLines {
		faults = append(faults, fmt.Sprintf("%s: %d lines: cut it by subject (at most %d)", name, line, maxLines))
	}
	return faults
}

// goFaults parses one Go file and reports whether it carries the package comment.
func goFaults(name string, data []byte) (doc bool, faults []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, data, parser.ParseComments)
	if err != nil {
		return true, []string{err.Error()}
	}
	doc = f.Doc != nil
	faults = append(faults, columnFaults(name, data)...)
	if !strings.HasSuffix(name, "_test.go") {
		return doc, append(faults, docFaults(fset, f)...)
	}
	var around []ast.Node // the nodes that enclose the one looked at
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		around = append(around, n)
		if call, ok := n.(*ast.CallExpr); ok {
			if why := forbidden(call, around); why != "" {
				faults = append(faults, fmt.Sprintf("%s: %s", fset.Position(call.Pos()), why))
			}
		}
		return true
	})
	return doc, faults
}

// forbidden says why a call has no place in a test.
func forbidden(call *ast.CallExpr, around []ast.Node) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	switch sel.Sel.Name {
	case "Sleep":
		if x.Name == "time" {
			return "time.Sleep in a test: wait for a signal"
		}
	case "Skip", "Skipf", "SkipNow":
		if strings.HasPrefix(paramType(x.Name, around), "testing.") {
			return "a skipped test shows nothing: make it run, or remove it"
		}
	}
	return ""
}

// paramType finds the type of the innermost parameter of that name, without
// its star. (rapid's Skip discards a draw and is no skipped test.)
func paramType(name string, around []ast.Node) string {
	for _, n := range slices.Backward(around) {
		var ft *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncDecl:
			ft = n.Type
		case *ast.FuncLit:
			ft = n.Type
		default:
			continue
		}
		for _, field := range ft.Params.List {
			for _, id := range field.Names {
				if id.Name == name {
					return strings.TrimPrefix(types.ExprString(field.Type), "*")
				}
			}
		}
	}
	return ""
}
