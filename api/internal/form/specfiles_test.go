package form

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestSpecIsShownAsItReads: what a job's spec is shown as is read as the same spec.
func TestSpecIsShownAsItReads(t *testing.T) {
	h := strings.Repeat("ab", 32)
	for _, text := range []string{
		`{"command":["a"]}`,
		`{"command":["a"],"count":3,"inputs":[{"path":"a","sha256":"` + h + `","size":0,"executable":true},` +
			`{"path":"b","manifest":"` + h + `","size":20},{"path":"c","each":"` + h + `"},{"path":"d","url":"https://x/y"},` +
			`{"path":"e","url":"https://x/y","sha256":"` + h + `","size":7},{"path":"f","content":""}],` +
			`"outputs":{"paths":["a","b/"],"optional":["c"],"max":"1536Ki","when":"success"}}`,
		`{"command":["a"],"outputs":{"optional":["c"]}}`,
	} {
		spec, err := jobspec.ParseSpec([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		shown, err := json.Marshal(Spec(spec))
		if err != nil {
			t.Fatal(err)
		}
		if len(spec.Inputs) == 0 && strings.Contains(string(shown), "inputs") {
			t.Errorf("no inputs are shown: %s", shown)
		}
		back, err := jobspec.ParseSpec(shown)
		same := reflect.DeepEqual(back.Inputs, spec.Inputs) && reflect.DeepEqual(back.Outputs, spec.Outputs)
		if err != nil || !same || back.Meaning() != spec.Meaning() {
			t.Errorf("%s: back %+v, %v", shown, back, err)
		}
	}
}
