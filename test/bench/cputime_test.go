package main

import (
	"testing"
	"time"
)

func TestParseTimes(t *testing.T) {
	got, err := parseTimes("4242 (a (b) c) S 17 4242 4242 0 -1 4194560 1 2 3 4 150 50 30 7 20 0 1 0 99 1 1")
	want := processTimes{pid: 4242, parent: 17, own: 2 * time.Second, children: 370 * time.Millisecond}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 2 3", "x (x) S 1 1 1 0 -1 4 1 2 3 4 1 5 3 7 2 0"} {
		if _, err := parseTimes(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestParseMetrics(t *testing.T) {
	text := "# HELP a b\na 12\nb{x=\"1\"} 3\nc_total 4.5e+03\n"
	got, err := parseMetrics(text, []string{"c_total", "a"})
	if err != nil || got[0] != 4500 || got[1] != 12 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseMetrics(text, []string{"b"}); err == nil {
		t.Error("a missing metric is no error")
	}
}
