package sim

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Format is how a drawing is written.
type Format string

// The formats of drawings: SVG is sharp at any size and says what a bar is when
// pointed at; PNG goes where SVG is not taken.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// FormatOf returns the format that a file's name asks for: SVG, unless it ends in
// .png.
func FormatOf(path string) Format {
	if strings.EqualFold(filepath.Ext(path), ".png") {
		return PNG
	}
	return SVG
}

// drawing is what charts are drawn on, in pixels from the top left. Colours are
// #rrggbb or #rrggbbaa. The same calls give the same bytes.
type drawing interface {
	// rect draws a bar with a thin white edge; title says what it is.
	rect(x, y, w, h float64, fill, title string)
	// text writes at a point on its base line; anchor is start, middle or end.
	text(x, y float64, anchor, text string)
	line(x1, y1, x2, y2 float64)
	// end writes what is not written yet.
	end() error
}

// newDrawing begins a drawing. Error: ErrBadCase, for one too large for its format.
func newDrawing(dst io.Writer, format Format, width, height int, title string) (drawing, error) {
	switch format {
	case SVG:
		return newSVG(dst, width, height, title), nil
	case PNG:
		return newPNG(dst, width, height)
	}
	return nil, fmt.Errorf("%w: a drawing as %.20q, want svg or png", ErrBadCase, string(format))
}
