package chart

import (
	"bufio"
	"fmt"
	"html"
	"io"
)

// svg writes a drawing; an error stays for Flush.
type svg struct {
	*bufio.Writer
}

var _ Drawing = (*svg)(nil)

func newSVG(dst io.Writer, width, height int, title string) *svg {
	s := &svg{bufio.NewWriter(dst)}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(s, "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", html.EscapeString(title), width, height)
	return s
}

func (s *svg) Rect(x, y, w, h float64, fill, title string) {
	fmt.Fprintf(s, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s" stroke="white" stroke-width="0.5">`, x, y, w, h, fill)
	fmt.Fprintf(s, "<title>%s</title></rect>\n", html.EscapeString(title))
}

// Text writes at a point; anchor is start, middle or end.
func (s *svg) Text(x, y float64, anchor, text string) {
	fmt.Fprintf(s, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, html.EscapeString(text))
}

func (s *svg) Line(x1, y1, x2, y2 float64) {
	fmt.Fprintf(s, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#999\"/>\n", x1, y1, x2, y2)
}

func (s *svg) End() error {
	fmt.Fprintln(s, "</svg>")
	if err := s.Flush(); err != nil {
		return fmt.Errorf("write drawing: %w", err)
	}
	return nil
}
