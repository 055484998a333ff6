package web

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// color is one in linear light, 0 to 1 each.
type color [3]float64

// Eyes as Machado, Oliveira and Fernandes model them (2009, severity 1).
var eyes = map[string][3][3]float64{
	"all cones":   {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanope":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranope": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
}

// seen is what a kind of eye makes of a color, in OKLab.
func (c color) seen(eye string) (lab [3]float64) {
	var s color
	for i, row := range eyes[eye] {
		s[i] = max(0, row[0]*c[0]+row[1]*c[1]+row[2]*c[2])
	}
	l := math.Cbrt(0.4122214708*s[0] + 0.5363325363*s[1] + 0.0514459929*s[2])
	m := math.Cbrt(0.2119034982*s[0] + 0.6806995451*s[1] + 0.1073969566*s[2])
	k := math.Cbrt(0.0883024619*s[0] + 0.2817188376*s[1] + 0.6299787005*s[2])
	return [3]float64{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*k, 1.9779984951*l - 2.4285922050*m + 0.4505937099*k,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*k,
	}
}

// apart is how far two colors are from each other, times 100.
func apart(a, b color, eye string) float64 {
	x, y := a.seen(eye), b.seen(eye)
	return 100 * math.Sqrt((x[0]-y[0])*(x[0]-y[0])+(x[1]-y[1])*(x[1]-y[1])+(x[2]-y[2])*(x[2]-y[2]))
}

// palette reads the style sheet's variables of one scheme.
func palette(t *testing.T, css string) map[string]color {
	t.Helper()
	out := map[string]color{}
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
		n, err := strconv.ParseUint(m[2], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			v := float64(n>>(16-8*i)&255) / 255
			c := out[m[1]]
			if c[i] = v / 12.92; v > 0.04045 {
				c[i] = math.Pow((v+0.055)/1.055, 2.4)
			}
			out[m[1]] = c
		}
	}
	return out
}

// contrast is WCAG's.
func contrast(a, b color) float64 {
	light := func(c color) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] + 0.05 }
	return max(light(a)/light(b), light(b)/light(a))
}

// TestPalettes: colours of states and of sites are not taken for each other, nor
// those that a bar or a drawing has beside each other, also by readers who do not
// tell red from green, by day and by night.
func TestPalettes(t *testing.T) {
	css := string(assets["app.css"].body)
	day, rest, _ := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	night, _, _ := strings.Cut(rest, "\n}\n")
	var sites []string
	for i := range maxColors {
		sites = append(sites, fmt.Sprintf("s%d", i+1))
	}
	for scheme, sheet := range map[string]string{"day": day, "night": night} {
		colors := palette(t, sheet)
		check := func(a, b string, least float64) {
			t.Helper()
			for eye := range eyes {
				want := least
				if eye != "all cones" {
					want = 5.5
				}
				if got := apart(colors[a], colors[b], eye); got < want {
					t.Errorf("%s, %s: %s and %s are %.1f apart, want %.1f", scheme, eye, a, b, got, want)
				}
			}
		}
		for i, a := range sites {
			if got := contrast(colors[a], colors["card"]); got < 2.5 {
				t.Errorf("%s: a line of %s has a contrast of %.1f", scheme, a, got)
			}
			for _, b := range sites[:i] {
				check(a, b, 8)
			}
			for _, b := range legendStates {
				check(a, b, 6)
			}
		}
		for i, a := range legendStates {
			for _, b := range legendStates[:i] {
				check(a, b, 8)
			}
		}
	}
}
