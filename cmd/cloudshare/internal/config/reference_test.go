package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// TestConfigReference: CONFIG.md has every key, with its default and meaning.
func TestConfigReference(t *testing.T) {
	text := Reference()
	goldenfile.Match(t, "../../../CONFIG.md", text)
	for _, f := range Fields() {
		if f.doc == "" || f.Key == "" || !strings.Contains(text, "| `"+f.Key+"` |") {
			t.Errorf("key %q is not documented: give it a koanf and a doc tag, and rewrite CONFIG.md", f.Key)
		}
	}
	seen := map[string]string{}
	for _, f := range Fields() {
		for _, name := range []string{f.flag(), f.Variable()} {
			if other := seen[name]; other != "" {
				t.Errorf("%s stands for %s and %s", name, other, f.Key)
			}
			seen[name] = f.Key
		}
	}
}

// TestSecretsAreNotShown: a key that is marked is told to be set, no more.
func TestSecretsAreNotShown(t *testing.T) {
	type kept struct {
		Token string        `koanf:"token" doc:"x" secret:"true"`
		Empty string        `koanf:"empty" doc:"x" secret:"true"`
		Age   time.Duration `koanf:"age" doc:"x"`
	}
	got := shownOf(reflect.ValueOf(kept{Token: "hush", Age: time.Hour}))
	want := []ShownKey{{Key: "token", Value: redacted}, {Key: "empty", Value: ""}, {Key: "age", Value: "1h0m0s"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
