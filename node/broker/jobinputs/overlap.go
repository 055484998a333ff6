package jobinputs

import (
	"strings"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// layout is where the files of a directory stand, and the folders that they are in.
type layout struct{ files, folders map[string]bool }

// layout returns where the files of a listing stand.
func (l *listing) layout() *layout {
	if l.laid != nil {
		return l.laid
	}
	l.laid = &layout{map[string]bool{}, map[string]bool{}}
	for _, p := range l.paths {
		l.laid.files[p] = true
		for up := range above(p) {
			if l.laid.folders[up] {
				break
			}
			l.laid.folders[up] = true
		}
	}
	return l.laid
}

// collides reports whether a file at a path would be one of these files, or a folder of one, or below one.
func (l *layout) collides(path string) bool {
	if l.files[path] || l.folders[path] {
		return true
	}
	for up := range above(path) {
		if l.files[up] {
			return true
		}
	}
	return false
}

// above yields the folders that a path is in, the nearest first; the work folder itself is "".
func above(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for path != "" {
			path = path[:max(strings.LastIndexByte(path, '/'), 0)]
			if !yield(path) {
				return
			}
		}
	}
}

// nesting is a directory within another one.
type nesting struct {
	outer, inner *listing
	below        string
}

// checkApart returns the error of the first input that would stand where another one does; listings are those of the
// inputs that are directories.
func (c *Call) checkApart(inputs []jobspec.Input, listings []*listing) error {
	by := make(map[string][]int, len(inputs))
	for i := range inputs {
		p := placeOf(&inputs[i])
		by[p] = append(by[p], i)
	}
	for i := range inputs {
		p := placeOf(&inputs[i])
		for _, o := range by[p] {
			if o < i && c.overlap(listings[o], listings[i], "") {
				return refuse(i, "path", "%q: %s: input %d is there, too", inputs[i].Path, files.ErrOverlap, o)
			}
		}
		for up := range above(p) {
			for _, o := range by[up] {
				below := strings.TrimPrefix(p[len(up):], "/")
				if o != i && c.overlap(listings[o], listings[i], below) {
					return refuse(i, "path", "%q: %s: input %d is there, too", inputs[i].Path, files.ErrOverlap, o)
				}
			}
		}
	}
	return nil
}

// placeOf returns the path of an input; the work folder itself is "".
func placeOf(in *jobspec.Input) string {
	p := strings.TrimSuffix(in.Path, "/")
	if p == "." {
		return ""
	}
	return p
}

// overlap reports whether an input has files where the outer one, in which it is, has some; nil is a single file.
func (c *Call) overlap(o, i *listing, below string) bool {
	switch {
	case o == nil && i == nil:
		return true
	case o == nil: // a file where, or above where, files of a directory are
		return len(i.paths) > 0
	case i == nil && below == "":
		return len(o.paths) > 0
	case i == nil:
		return o.layout().collides(below)
	}
	n := nesting{o, i, below}
	yes, known := c.apart[n]
	if !known {
		yes = n.overlaps()
		c.apart[n] = yes
	}
	return yes
}

func (n *nesting) overlaps() bool {
	at, prefix := n.outer.layout(), ""
	if n.below != "" {
		prefix = n.below + "/"
	}
	for _, p := range n.inner.paths {
		if at.collides(prefix + p) {
			return true
		}
	}
	return false
}
