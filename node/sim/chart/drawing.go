package chart

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Format is how a drawing is written.
type Format string

// The formats of drawings: SVG is sharp at any size and says what a bar is when
// pointed at; PNG goes where SVG is not taken.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// FormatOf returns the format that the ending of a file's name asks for. The error
// names the endings that are known.
func FormatOf(path string) (Format, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".svg":
		return SVG, nil
	case ".png":
		return PNG, nil
	default:
		return "", fmt.Errorf("no picture is drawn as %q: name a file that ends in .svg or .png", path)
	}
}

// Palette colours owners, and policies.
var Palette = [sim.MaxSites]string{
	"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#332288", "#ddaa33", "#bb5566", "#004488", "#999933", "#882255",
}

// Drawing is what charts are drawn on, in pixels from the top left. Colours are
// #rrggbb or #rrggbbaa. The same calls give the same bytes.
type Drawing interface {
	// Rect draws a bar with a thin white edge; title says what it is.
	Rect(x, y, w, h float64, fill, title string)
	// Text writes at a point on its base line; anchor is start, middle or end.
	Text(x, y float64, anchor, text string)
	Line(x1, y1, x2, y2 float64)
	// End writes what is not written yet.
	End() error
}

// New begins a drawing. Error: ErrBadCase, for one too large for its format.
func New(dst io.Writer, format Format, width, height int, title string) (Drawing, error) {
	switch format {
	case SVG:
		return newSVG(dst, width, height, title), nil
	case PNG:
		return newPNG(dst, width, height)
	}
	return nil, fmt.Errorf("%w: a drawing as %.20q, want svg or png", sim.ErrBadCase, string(format))
}
