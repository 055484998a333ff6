package jobspec

import "testing"

func TestMatchName(t *testing.T) {
	text := func(name string, env map[string]string) []byte {
		s := DefaultSpec()
		s.Name, s.Env, s.Command = name, env, []string{"name"}
		return s.appendSealed(nil)
	}
	for _, c := range []struct {
		text []byte
		part string
		want bool
	}{
		{text("Render 7", nil), "render", true},
		{text("Render 7", map[string]string{"a": "b", "name": "x"}), "er 7", true},
		{text("Render 7", map[string]string{"name": "other"}), "other", false},
		{text(`quo"ted`, nil), `o"t`, true},
		{text("", nil), "name", false},
		{text("", map[string]string{"name": "x"}), "x", false},
		{text("", nil), "", true},
		{[]byte(`{}`), "x", false},
		{[]byte(`{"env":{},`), "x", false},
		{[]byte(`{"name":7}`), "7", false},
		{nil, "x", false},
	} {
		if got := MatchName(c.text, c.part); got != c.want {
			t.Errorf("%s in %s: %v", c.part, c.text, got)
		}
	}
}
