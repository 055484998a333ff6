package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// words are what templates call.
var words = template.FuncMap{
	"asset": assetLink, "cores": cores, "count": count, "moment": moment, "iso": iso, "took": took, "tone": tone,
	"dialable": dialable, "join": strings.Join, "short": short, "percent": percent,
	"bytes":  byteWords,
	"hours":  func(h float64) string { return strconv.FormatFloat(h, 'f', 2, 64) },
	"legend": func() []string { return legendStates },
}

// cores words milli-cores.
func cores(milli int64) string {
	if milli%1000 == 0 {
		return count(milli / 1000)
	}
	return strconv.FormatFloat(float64(milli)/1000, 'f', 1, 64)
}

// coresWords is cores with the word.
func coresWords(milli int64) string {
	if milli == 1000 {
		return "1 core"
	}
	return cores(milli) + " cores"
}

// count groups the digits of a whole number by three: 12,345.
func count(n any) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// percent words a part of a whole that is not 0.
func percent(part, whole int) string {
	return strconv.Itoa(int(math.Round(100*float64(part)/float64(whole)))) + " %"
}

// moment words a time for readers without scripts; a script turns it into the
// reader's own zone.
func moment(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// took words how long something took, with two units at most.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// tone returns a state's colour.
func tone(state string) string {
	switch state {
	case "succeeded", "alive", "ready":
		return "good"
	case "running", "assigned", "stopping":
		return "busy"
	case "failed", "lost":
		return "bad"
	case "suspect", "withdrawn", "timed-out", "declined":
		return "warn"
	}
	return "plain"
}

// short cuts text from outside to what fits a line.
func short(most int, s string) string {
	s = strings.Map(func(r rune) rune {
		if jobspec.Unprintable(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
