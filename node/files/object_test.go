package files

import (
	"errors"
	"strings"
	"testing"
)

// TestParseObject takes keys as they stand; what a server could take for something else is refused.
func TestParseObject(t *testing.T) {
	for text, want := range map[string]Object{
		"s3://data/ref.fa":                       {"data", "ref.fa"},
		"s3://my.data-1/a/b c/ü %2F?x=1#y+&=":    {"my.data-1", "a/b c/ü %2F?x=1#y+&="},
		"s3://data//a//b/":                       {"data", "/a//b/"},
		"s3://data/..a/...":                      {"data", "..a/..."},
		"s3://data/" + strings.Repeat("k", 1024): {"data", strings.Repeat("k", 1024)},
	} {
		if got, err := ParseObject(text); err != nil || got != want {
			t.Errorf("%.60q: %q %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "s3://", "s3:///k", "s3://data", "s3://data/", "S3://data/k", "s3:/data/k", "https://data/k",
		"s3://Data/k", "s3://da/k", "s3://-data/k", "s3://data-/k", "s3://a..b/k", "s3://a.-b/k", "s3://10.0.0.1/k", "s3://u:p@data/k",
		"s3://data:443/k", "s3://d_a_t_a/k", "s3://dätä/k", "s3://data\n/k", "s3://" + strings.Repeat("b", 64) + "/k",
		"s3://data/a/../b", "s3://data/..", "s3://data/./b", `s3://data/a\..\b`, "s3://data/a\x00", "s3://data/a\nb", "s3://data/\u0085", "s3://data/\xff",
		"s3://data/" + strings.Repeat("k", 1025),
	} {
		if got, err := ParseObject(text); !errors.Is(err, ErrObject) || strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%.60q: %q %v", text, got, err)
		}
	}
}

// TestWithin: a prefix is a folder, and ends at a slash.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		where, object string
		want          bool
	}{
		{"s3://data", "s3://data/any/thing", true},
		{"s3://data/", "s3://data/any/thing", true},
		{"s3://data", "s3://data2/any", false},
		{"s3://data/ref", "s3://data/ref/x", true},
		{"s3://data/ref/", "s3://data/ref/x", true},
		{"s3://data/ref", "s3://data/ref", true},
		{"s3://data/ref", "s3://data/reference", false},
		{"s3://data/ref", "s3://data/Ref/x", false},
		{"s3://data/ref", "s3://data//ref/x", false},
		{"s3://data/ref/x", "s3://data/ref", false},
	} {
		where, err := ParseObjects(c.where)
		o, bad := ParseObject(c.object)
		if err != nil || bad != nil || o.Within(where) != c.want {
			t.Errorf("%s in %s: %v %v, want %v", c.object, c.where, err, bad, c.want)
		}
	}
	for _, text := range []string{"data", "s3://", "s3:///x", "s3://d", "s3://data//", "s3://data/../x", "s3://data/*\x00", "s3://*"} {
		if got, err := ParseObjects(text); !errors.Is(err, ErrObject) {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
}
