package jobspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

func TestIndicesAreReadInAnyOrder(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "3,17,40-60": "3,17,40-60", "40–60,3": "3,40-60", "5,4,3,3": "3-5", "1-4,2-9": "1-9",
		"999999": "999999",
	} {
		x, err := ParseIndices(text)
		if err != nil || x.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, x, err, want)
		}
	}
	for _, text := range []string{
		"", ",", "1,", "a", "-1", "5-", "9-3", "1000000", "0-1000000", "1 ", "+1", "1-2-3",
		strings.Repeat("1,", MaxIndexRanges) + "1",
	} {
		if x, err := ParseIndices(text); err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 120 {
			t.Errorf("%.20q: %s, %v", text, x, err)
		}
	}
}

// TestIndicesHaveAPlaceEach checks that positions and indices are each other's inverse.
func TestIndicesHaveAPlaceEach(t *testing.T) {
	x, err := ParseIndices("3,17,40-60,62,100-101")
	if err != nil || x.Len() != 26 {
		t.Fatalf("%d, %v", x.Len(), err)
	}
	n := Numbering{x, x.Len()}
	position := uint32(0)
	for index := range uint32(120) {
		if got := n.Position(index); got != position {
			t.Errorf("%d tasks are below %d, want %d", got, index, position)
		}
		if !x.Has(index) {
			continue
		}
		if n.Index(position) != index {
			t.Errorf("at %d is %d, want %d", position, n.Index(position), index)
		}
		position++
	}
	if got, length := n.Run(4); got != 42 || length != 19 {
		t.Errorf("from %d on %d", got, length)
	}
	if (Indices{}).Has(0) || (Indices{}).Len() != 0 || n.Index(99) != 99 {
		t.Error("beyond the set")
	}
}

// TestForeignPayloadsNumberNothingTwice checks that a payload that no broker wrote is read as one
// without indices, and does not panic.
func TestForeignPayloadsNumberNothingTwice(t *testing.T) {
	for _, payload := range []string{`{"indices":"`, `{"indices":"5`, `{"indices":"x"}`, `{"indices":"5,6"}`, `{"indices":""}`, `{}`, ``} {
		if n := NumberingOf([]byte(payload), 3); n.Index(2) != 2 || n.Position(9) != 3 {
			t.Errorf("%s: %+v", payload, n)
		}
	}
	js := command.JobSpec{Count: 3, Payload: []byte(`{"indices":"5,6"}` + "\x01" + `{"command":["a"]}`)}
	if s, err := SpecOf(js, plain{}); err != nil || s.Indices.Len() != 0 || s.Count != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSpecsWithIndices(t *testing.T) {
	for _, text := range []string{
		`{"command":["a"],"indices":"3,17,40-60"}`, `{"command":["a"],"indices":"40-60,17,3","count":23}`,
		`{"indices":"3,17,40-60","labels":{"k":"v"},"name":"n","command":["a"]}`,
	} {
		s, err := ParseSpec([]byte(text))
		if err != nil || s.Count != 23 || s.Indices.String() != "3,17,40-60" {
			t.Fatalf("%s: %+v, %v", text, s, err)
		}
		js := s.JobSpec("a", 1, 2, plain{})
		if back, err := SpecOf(js, plain{}); err != nil || fmt.Sprint(back) != fmt.Sprint(s) {
			t.Errorf("%s: through the state %+v, %v", text, back, err)
		}
		if n := NumberingOf(js.Payload, js.Count); n.Index(2) != 40 {
			t.Errorf("%s: at 2 is %d", js.Payload, n.Index(2))
		}
		if got := MatchLabels(js.Payload, map[string]string{"k": "v"}); got != (s.Labels != nil) {
			t.Errorf("%s: labels match: %t", js.Payload, got)
		}
	}
	for text, field := range map[string]string{
		`{"command":["a"],"indices":"3,4","count":3}`: "count", `{"command":["a"],"indices":"x"}`: "indices", `{"command":["a"],"indices":3}`: "indices",
	} {
		if _, err := ParseSpec([]byte(text)); err == nil || err.(*SpecError).Field != field { //nolint:errorlint // it is documented
			t.Errorf("%s: %v", text, err)
		}
	}
}
