package chart

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"github.com/cloudshare/cloudshare/node/sim"
)

// maxPixels bounds a picture's memory: 4 bytes each.
const maxPixels = 32 << 20

// raster draws a picture of pixels: whole ones only, and letters of a fixed font,
// so that every machine makes the same.
type raster struct {
	dst io.Writer
	img *image.NRGBA
}

var _ Drawing = (*raster)(nil)

func newPNG(dst io.Writer, width, height int) (*raster, error) {
	if width*height > maxPixels {
		return nil, fmt.Errorf("%w: a PNG of %d × %d pixels; draw it as SVG, or with fewer cores", sim.ErrBadCase, width, height)
	}
	r := &raster{dst: dst, img: image.NewNRGBA(image.Rect(0, 0, width, height))}
	draw.Draw(r.img, r.img.Bounds(), image.White, image.Point{}, draw.Src)
	return r, nil
}

func (r *raster) Rect(x, y, w, h float64, fill, _ string) {
	area := image.Rect(pixel(x), pixel(y), pixel(x+w), pixel(y+h))
	if area.Dx() > 2 { // the white edge
		area.Max.X--
	}
	draw.Draw(r.img, area, image.NewUniform(parseColor(fill)), image.Point{}, draw.Over)
}

func (r *raster) Text(x, y float64, anchor, text string) {
	d := font.Drawer{Dst: r.img, Src: image.Black, Face: basicfont.Face7x13}
	text = strings.ReplaceAll(text, "–", "-") // the font has ASCII
	at := fixed.P(pixel(x), pixel(y))
	switch width := d.MeasureString(text); anchor {
	case "middle":
		at.X -= width / 2
	case "end":
		at.X -= width
	}
	d.Dot = at
	d.DrawString(text)
}

// Line draws a level line: charts have no others.
func (r *raster) Line(x1, y1, x2, _ float64) {
	area := image.Rect(pixel(x1), pixel(y1), pixel(x2), pixel(y1)+1)
	draw.Draw(r.img, area, image.NewUniform(parseColor("#999999")), image.Point{}, draw.Over)
}

func (r *raster) End() error {
	if err := png.Encode(r.dst, r.img); err != nil {
		return fmt.Errorf("write drawing: %w", err)
	}
	return nil
}

func pixel(v float64) int { return int(math.Round(v)) }

// parseColor reads #rrggbb or #rrggbbaa.
func parseColor(text string) color.NRGBA {
	text = strings.TrimPrefix(text, "#")
	if len(text) == 6 {
		text += "ff"
	}
	v, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		panic("not a colour: " + err.Error()) // they are constants
	}
	return color.NRGBA{R: uint8(v >> 24), G: uint8(v >> 16), B: uint8(v >> 8), A: uint8(v)}
}
