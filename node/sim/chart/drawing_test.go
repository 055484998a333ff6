package chart

import (
	"bytes"
	"errors"
	"image/color"
	"image/png"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/sched"
)

// The same schedule as SVG and as PNG: a bar has its owner's colour.
func TestGanttAsPNG(t *testing.T) {
	c := paperCase(sched.SimplDirect, sched.Partial)
	out, err := sim.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	var first, again bytes.Buffer
	if err := errors.Join(Gantt(&first, PNG, c, out, "Figure – 1"), Gantt(&again, PNG, c, out, "Figure – 1")); err != nil ||
		!bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Fatalf("drawn twice it is not the same: %v", err)
	}
	img, err := png.Decode(&first)
	if err != nil || img.Bounds().Dx() != 910 {
		t.Fatalf("a picture %v: %v", img.Bounds(), err)
	}
	// Site A's task in the upper row, B's in the lower one, and paper.
	for at, want := range map[[2]int]string{{90, 45}: Palette[0], {500, 63}: Palette[1], {905, 5}: "#ffffff"} {
		if got := color.NRGBAModel.Convert(img.At(at[0], at[1])); got != color.Color(parseColor(want)) {
			t.Errorf("pixel %v is %v, want %s", at, got, want)
		}
	}
}

func TestDrawingsAreBounded(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct {
		format        Format
		width, height int
	}{{PNG, 910, 100_000}, {"gif", 10, 10}} {
		if _, err := New(&b, c.format, c.width, c.height, "x"); !errors.Is(err, sim.ErrBadCase) {
			t.Errorf("%s of %d × %d: %v", c.format, c.width, c.height, err)
		}
	}
}

// A file's name asks for a format, or for none that there is: a.bmp was SVG once.
func TestFormatOf(t *testing.T) {
	for path, want := range map[string]Format{"a.svg": SVG, "a.SVG": SVG, "a.png": PNG, "b/c.PNG": PNG, "a.bmp": "", "a": "", "png": "", "a.png.gz": "", "/dev/stdout": ""} {
		got, err := FormatOf(path)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
}
