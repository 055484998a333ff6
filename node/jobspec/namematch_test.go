package jobspec

import "testing"

func TestMatchName(t *testing.T) {
	payload := func(name string, labels map[string]string) []byte {
		s := DefaultSpec()
		s.Name, s.Labels, s.Command = name, labels, []string{"name"}
		return s.JobSpec("a", 1, 0).Payload
	}
	for _, c := range []struct {
		payload []byte
		part    string
		want    bool
	}{
		{payload("Render 7", nil), "render", true},
		{payload("Render 7", map[string]string{"a": "b", "name": "x"}), "er 7", true},
		{payload("Render 7", map[string]string{"name": "other"}), "other", false},
		{payload(`quo"ted`, nil), `o"t`, true},
		{payload("", nil), "name", false},
		{payload("", map[string]string{"name": "x"}), "x", false},
		{payload("", nil), "", true},
		{[]byte(`{}`), "x", false},
		{[]byte(`{"labels":{},`), "x", false},
		{[]byte(`{"name":7}`), "7", false},
		{nil, "x", false},
	} {
		if got := MatchName(c.payload, c.part); got != c.want {
			t.Errorf("%s in %s: %v", c.part, c.payload, got)
		}
	}
}
