package jobspec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestNotify: who is told is in the spec and in its meaning, and in no text that leaves the site.
func TestNotify(t *testing.T) {
	const text = `{"command":["true"],"notify":[{"url":"https://a.example/x?y=z"},` +
		`{"url":"https://b.example:8443/","on":["failed","ended"]}]}`
	s, err := ParseSpec([]byte(text))
	want := []Hook{{"https://a.example/x?y=z", []string{"ended"}}, {"https://b.example:8443/", []string{"ended", "failed"}}}
	if err != nil || !reflect.DeepEqual(s.Notify, want) {
		t.Fatalf("%+v, %v", s.Notify, err)
	}
	if texts := string(s.appendSealed(s.publicText())); strings.Contains(texts, "example") {
		t.Errorf("a payload would say %s", texts)
	}
	bare := s
	bare.Notify = nil
	if s.Meaning() == bare.Meaning() {
		t.Error("the same job, told to others, means the same")
	}
	for public, sealed := range map[string]string{`{"notify":[]}`: `{}`, `{}`: `{"notify":[]}`} {
		if _, err := ReadTexts([]byte(public), []byte(sealed)); err == nil {
			t.Errorf("%s and %s are read", public, sealed)
		}
	}
	h := Hook{On: []string{HookFailed}}
	if h.Wants("succeeded") || !h.Wants("cancelled") || !want[0].Wants("succeeded") {
		t.Error("failed is not: any end but success")
	}
}

// TestBadNotify: each field that is wrong is named, with what is right.
func TestBadNotify(t *testing.T) {
	one := func(url string) string { return fmt.Sprintf(`[{"url":%q}]`, url) }
	for value, want := range map[string]string{
		`{}`: "notify: must be a list", `"https://a.example"`: "notify: must be a list", `[7]`: "notify.0: must be an object",
		`[{"url":7}]`: "notify.0.url: must be a string",
		`[{}]`:        "notify.0.url: is missing",
		`[{"url":"https://a.example","on":"ended"}]`:                "notify.0.on: must be a list",
		`[{"url":"https://a.example","on":["started"]}]`:            "notify.0.on: must hold ended or failed",
		`[{"url":"https://a.example","on":[1]}]`:                    "notify.0.on: must be a list of strings",
		`[{"url":"https://a.example","secret":"x"}]`:                "notify.0.secret: is not a field",
		`[{"url":"https://a","url":"https://a"}]`:                   "notify.0.url: stands twice",
		`[{"url":"https://a.example"},{"url":"https://a.example"}]`: "notify.1.url: stands in an earlier one",
		one("http://a.example"):                                     "by https only",
		one("ftp://a.example"):                                      "by https only",
		one("//a.example"):                                          "by https only",
		one("https:///x"):                                           "by https only",
		one("https://%zz"):                                          "by https only",
		one("https://u:p@a.example"):                                "no name and password",
		one("https://a.example/#x"):                                 "no #fragment",
		one("https://a.example/\n"):                                 "no control",
		one("https://a.example/\u202e"):                             "no control",
		one("https://a.example/" + strings.Repeat("x", MaxHookURL)): "at most 2048 bytes",
		`[{"url":"https://a.example"},{"url":"https://a.example/1"},{"url":"https://a.example/2"},` +
			`{"url":"https://a.example/3"},{"url":"https://a.example/4"}]`: "notify: has more than 4",
	} {
		_, err := ParseSpec([]byte(`{"command":["true"],"notify":` + value + `}`))
		var wrong *SpecError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.100s: %v, want %s", value, err, want)
		}
	}
	if s, err := ParseSpec([]byte(`{"command":["true"],"notify":null}`)); err != nil || s.Notify != nil {
		t.Errorf("null: %v", err)
	}
}
