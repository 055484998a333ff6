package local

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fill sets every field below v to something that is not its zero, so that one
// that is added to what lines hold cannot be forgotten here.
func fill(t *testing.T, v reflect.Value, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("a \"b\"\n\\ü\xff{" + strings.Repeat("x", int(*n)))
	case reflect.Int, reflect.Int64:
		v.SetInt(-*n << 20)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(*n, *n)))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, k, n)
			fill(t, e, n)
			v.SetMapIndex(k, e)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	default:
		t.Fatalf("lines hold a %s, which the test cannot fill", v.Type())
	}
}

// Every field of every kind of line is read as it was written, in its fullest
// form and in its emptiest, and so are the lines of earlier versions. One that was
// torn is none.
func TestLinesRoundTrip(t *testing.T) {
	kinds := reflect.TypeFor[line]()
	for i := range kinds.NumField() {
		var full, empty line
		n := int64(0)
		fill(t, reflect.ValueOf(&full).Elem().Field(i), &n)
		if full.Ask != nil {
			full.Ask.Task.Files = nil // they are copied before the line is written
		}
		field := reflect.ValueOf(&empty).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		for _, want := range []line{full, empty} {
			text := want.appendText(nil)
			if got, ok := parseLine(text); !ok || !reflect.DeepEqual(got, want) {
				t.Errorf("%s\nis read as %+v, want %+v", text, got, want)
			}
			for cut := range text {
				if got, ok := parseLine(text[:cut]); ok {
					t.Fatalf("the first %d bytes of %s are read as %+v", cut, text, got)
				}
			}
			if strings.ContainsAny(string(text), "\n") {
				t.Errorf("%q is more than a line", text)
			}
		}
		old, err := json.Marshal(empty)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := parseLine(old); !ok || !reflect.DeepEqual(got, empty) {
			t.Errorf("%s\nis read as %+v", old, got)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`2 end "site-1.4-0-1-9" 0 0 0 5 6 "" 0 0 7 .`))
	f.Add([]byte(`2 ask "j" 1 1 1 "o" "s" "m" 1 2 3 1 "true" "" 1 "k" "v" 0 0 1 1 1 0 .`))
	f.Add([]byte(`2 end "site-1.4-0-1-9" 0 0 0 5 6 "" 0 0 7 1 2 3 1 2 .`))
	f.Add([]byte(`2 ask "j" 1 1 1 "o" "s" "m" 1 2 3 1 "true" "" 0 0 0 1 1 0 0 1 "out/*" 0 5 6 1 .`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, ok := parseLine(b)
		if !ok || len(b) > 0 && b[0] == '{' {
			return
		}
		if again, ok := parseLine(l.appendText(nil)); !ok || !reflect.DeepEqual(l, again) {
			t.Errorf("%q is read as %+v, then as %+v", b, l, again)
		}
	})
}
