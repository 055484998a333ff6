package executor

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is how long one name of a path may be, in bytes: file systems have no longer ones.
const MaxName = 255

// CheckPath says what is wrong with the path of a file that a task is to find: it is
// relative to the work folder (or absolute, if that is allowed), has no empty name, "." or
// "..", no control character, and is UTF-8.
func CheckPath(p string, absolute bool) error {
	if strings.HasPrefix(p, "/") {
		if !absolute {
			return fmt.Errorf("path %q is absolute: give one below the task's work folder", shorten(p))
		}
		p = p[1:]
	}
	return checkNames(p)
}

// checkNames checks a path without its first slash.
func checkNames(p string) error {
	switch {
	case p == "":
		return errors.New("path is empty: name a file")
	case len(p) > MaxPath:
		return fmt.Errorf("path %q is %d bytes long: at most %d", shorten(p), len(p), MaxPath)
	case !utf8.ValidString(p):
		return fmt.Errorf("path %q is not UTF-8", shorten(p))
	case strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("path %q holds a control character", shorten(p))
	}
	for name := range strings.SplitSeq(p, "/") {
		switch {
		case name == "" || name == "." || name == "..":
			return fmt.Errorf("path %q holds an empty name, \".\" or \"..\": write it without", shorten(p))
		case len(name) > MaxName:
			return fmt.Errorf("path %q holds a name of more than %d bytes", shorten(p), MaxName)
		}
	}
	return nil
}

// shorten keeps a message short, whatever a path is.
func shorten(p string) string {
	const most = 100
	if len(p) > most {
		return p[:most] + "…"
	}
	return p
}

// CheckFiles says what is wrong with the files of a task together: a path that is twice
// there, or that of a folder, too, or that is no path.
func CheckFiles(files []File, absolute bool) error {
	if len(files) > MaxFiles {
		return fmt.Errorf("%d files: at most %d", len(files), MaxFiles)
	}
	paths := make([]string, len(files))
	for i, f := range files {
		if err := CheckPath(f.Path, absolute); err != nil {
			return err
		}
		paths[i] = f.Path
	}
	slices.SortFunc(paths, ComparePaths)
	for i, p := range paths[min(1, len(paths)):] {
		if err := CheckApart(paths[i], p); err != nil {
			return err
		}
	}
	return nil
}

// CheckApart says what is wrong if files are to stand at a path and at the one that follows it in the order of
// [ComparePaths].
func CheckApart(path, next string) error {
	rest, below := strings.CutPrefix(next, path)
	switch {
	case !below || rest != "" && rest[0] != '/':
		return nil
	case rest == "":
		return fmt.Errorf("two files have the path %q", shorten(path))
	}
	return fmt.Errorf("%q is a file, and a folder by %q: rename one", shorten(path), shorten(next))
}

// ComparePaths orders paths name by name, each by its bytes. So what is below a folder follows it at once, and nothing
// stands between.
func ComparePaths(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return cmp.Compare(rank(a, n), rank(b, n))
}

// rank returns the place of a path's n-th byte in the order: its end, a slash, any other byte.
func rank(path string, n int) int {
	switch {
	case n == len(path):
		return 0
	case path[n] == '/':
		return 1
	}
	return int(path[n]) + 2
}

// Glob is a pattern of files that a task leaves.
type Glob struct {
	names  []string // a pattern for each name of the path
	folder bool     // all that is below what names match
}

// ParseGlob reads a pattern: names with slashes between, relative to the work folder, in
// which *, ? and [a-z] stand for parts of one name, and a backslash takes the meaning from
// what follows it. As in shells, a name that begins with a dot is matched by one that does.
// A slash at the end names all that is in a folder and below; "./" is all that there is.
func ParseGlob(text string) (g Glob, err error) {
	body := text
	if strings.HasSuffix(body, "/") {
		g.folder, body = true, body[:len(body)-1]
	}
	if g.folder && body == "." {
		return g, nil
	}
	if strings.HasPrefix(text, "/") {
		return Glob{}, fmt.Errorf("output %q is absolute: give one below the task's work folder", shorten(text))
	}
	if err = checkNames(body); err != nil {
		return Glob{}, fmt.Errorf("output: %w", err)
	}
	g.names = strings.Split(body, "/")
	for _, name := range g.names {
		if name == "**" {
			return Glob{}, fmt.Errorf("output %q: ** is not known: name a folder, with a slash at its end", shorten(text))
		}
		if _, err = path.Match(name, ""); err != nil {
			return Glob{}, fmt.Errorf("output %q: %q is no pattern (an open bracket, or a backslash at its end)", shorten(text), name)
		}
	}
	return g, nil
}

// Match reports whether a file of that path is meant.
func (g Glob) Match(p string) bool {
	below, whole := g.match(p)
	return whole && (below > 0 == g.folder)
}

// MatchFolder reports whether a folder of that path is one of those whose files are meant.
func (g Glob) MatchFolder(p string) bool {
	below, whole := g.match(p)
	return whole && g.folder && below == 0
}

// MayHold reports whether a file below a folder of that path may be meant.
func (g Glob) MayHold(p string) bool {
	below, whole := g.match(p)
	if whole {
		return g.folder && below >= 0
	}
	return below < 0
}

// match compares a path's names with the pattern's. whole: all of the pattern's are there
// and match, and below names follow. Else below is less than 0 if all that are there match.
func (g Glob) match(p string) (below int, whole bool) {
	for _, pattern := range g.names {
		if p == "" {
			return -1, false
		}
		name, rest, _ := strings.Cut(p, "/")
		if !matchName(pattern, name) {
			return 0, false
		}
		p = rest
	}
	if p == "" {
		return 0, true
	}
	return strings.Count(p, "/") + 1, true
}

// matchName compares one name. Only patterns that begin with a dot match names that do.
func matchName(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(strings.TrimPrefix(pattern, `\`), ".") {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// ParseGlobs reads the patterns of outputs: those that must match, then the others.
func (o Outputs) ParseGlobs() (globs []Glob, err error) {
	for _, text := range slices.Concat(o.Paths, o.Optional) {
		g, err := ParseGlob(text)
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	return globs, nil
}

// Check says what is wrong with them.
func (o Outputs) Check() error {
	if _, err := o.ParseGlobs(); err != nil {
		return err
	}
	if o.MaxBytes < 0 || o.MaxFiles < 0 || o.MaxFiles > MaxFiles {
		return fmt.Errorf("outputs of at most %d bytes in %d files: give bounds that are not negative, and %d files at most",
			o.MaxBytes, o.MaxFiles, MaxFiles)
	}
	return nil
}
