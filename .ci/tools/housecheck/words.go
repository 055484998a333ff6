package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// word is one that the field does not use, or that is no English of today.
type word struct {
	match   *regexp.Regexp
	instead string
}

// words are the banned ones. Each pattern has a class in it, so that this file passes its
// own check.
var words = []word{
	banned(`ane[w]`, "again"),
	banned(`for eve[r]`, "forever"),
	banned(`there[o]f|there[i]n|when[c]e|then[c]e|here[w]ith`, "the noun that is meant"),
	banned(`reig[n]|thron[e]`, "leader term"),
	banned(`crow[n](s|ed)?`, "elect, or reconcile the leadership"),
	banned(`abdicat[e](s|d)?`, "step down"),
	banned(`hei[r]`, "successor"),
	banned(`warde[n]`, "lease tracker"),
	banned(`suito[r]`, "filter, or candidate"),
	banned(`hearsa[y]`, "reports"),
	banned(`doing[s]`, "progress"),
	banned(`condemne[d]`, "what was decided of it, such as lossProposed"),
	banned(`accus[e](s|d)?`, "annotate the error"),
	banned(`so[w](s|n)?|plante[d]`, "create, or import"),
	banned(`forekno[w](s|n|ing)?`, "clairvoyant"),
}

func banned(pattern, instead string) word {
	return word{regexp.MustCompile(`(?i)\b(` + pattern + `)\b`), instead}
}

// wordFaults finds banned words in code and prose; an identifier counts as its words.
func wordFaults(name string, data []byte) []string {
	if ext := filepath.Ext(name); ext != ".go" && ext != ".md" || strings.Contains(name, "testdata/") {
		return nil
	}
	var faults []string
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text = article.ReplaceAllString(camel.ReplaceAllString(text, "$1 $2"), "$1 $2")
		for _, w := range words {
			if found := w.match.FindString(text); found != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %q: say %s", name, line, found, w.instead))
			}
		}
	}
	return faults
}

// camel is where one word of an identifier ends and the next begins, article where one of
// a single letter does.
var (
	camel   = regexp.MustCompile(`([a-z])([A-Z])`)
	article = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)
