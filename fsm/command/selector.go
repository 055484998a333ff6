package command

import (
	"fmt"
	"slices"
	"strings"
)

// Selector is one requirement on a machine's labels, with the meaning it has in Kubernetes:
//
//	KEY            there is such a label
//	!KEY           there is none
//	KEY=VALUE      it has this value; KEY==VALUE means the same
//	KEY!=VALUE     it has another value, or there is none
//	KEY in (A,B)   it has one of these values
//	KEY notin (A,B)  it has none of these values, or there is none
type Selector struct {
	Key    string
	Values []string // sorted, unique; none means any value
	Not    bool
}

// Accepts reports whether a machine qualifies whose label Key has the value, or that has no such label.
func (r *Selector) Accepts(value string, present bool) bool {
	return (present && (len(r.Values) == 0 || r.has(value))) != r.Not
}

// Admits reports whether a machine with these labels qualifies.
func (r *Selector) Admits(labels Pairs) bool { return r.Accepts(labels.Get(r.Key)) }

// has reports whether a value is one of the selector's. Most selectors have one or two.
func (r *Selector) has(value string) bool {
	if len(r.Values) <= 2 {
		return slices.Contains(r.Values, value)
	}
	_, ok := slices.BinarySearch(r.Values, value)
	return ok
}

// String returns the selector's canonical form, which ParseSelector reads.
func (r *Selector) String() string {
	not, in := "", " in ("
	if r.Not {
		not, in = "!", " notin ("
	}
	switch len(r.Values) {
	case 0:
		return not + r.Key
	case 1:
		return r.Key + not + "=" + r.Values[0]
	}
	return r.Key + in + strings.Join(r.Values, ",") + ")"
}

// ParseSelector reads a selector, with spaces where they are harmless and values in any order. The
// error says what it should be, and wraps ErrOutOfBounds.
func ParseSelector(text string) (Selector, error) {
	if len(text) > MaxSelectorText {
		return Selector{}, within("bytes of a selector", int64(len(text)), 1, MaxSelectorText)
	}
	r, ok := readSelector(strings.Trim(text, " "))
	if !ok || !isLabelKey(r.Key) {
		return Selector{}, fmt.Errorf("%w: selector %.140q: must be KEY, !KEY, KEY=VALUE, KEY!=VALUE, "+
			"KEY in (A,B) or KEY notin (A,B)", ErrOutOfBounds, text)
	}
	slices.Sort(r.Values)
	r.Values = slices.Compact(r.Values)
	for _, v := range r.Values {
		if err := checkLabel(r.Key, v); err != nil {
			return Selector{}, err
		}
	}
	err := within("values of a selector", int64(len(r.Values)), 0, MaxSelectorValues)
	if err != nil || len(r.Values) < 2 {
		return r, err
	}
	// Writing the canonical form may have added spaces.
	return r, within("bytes of a selector", int64(len(r.String())), 1, MaxSelectorText)
}

// readSelector splits a selector into its parts, which ParseSelector checks.
func readSelector(text string) (r Selector, ok bool) {
	if key, isNot := strings.CutPrefix(text, "!"); isNot {
		return Selector{Key: key, Not: true}, true
	}
	if strings.HasSuffix(text, ")") {
		return readList(text[:len(text)-1])
	}
	key, value, equal := strings.Cut(text, "=")
	if !equal {
		return Selector{Key: key}, true
	}
	key, r.Not = strings.CutSuffix(key, "!")
	if !r.Not {
		value = strings.TrimPrefix(value, "=")
	}
	r.Key, r.Values = strings.TrimRight(key, " "), []string{strings.TrimLeft(value, " ")}
	return r, true
}

// readList reads "KEY in (A,B", without the last parenthesis.
func readList(text string) (r Selector, ok bool) {
	head, list, ok := strings.Cut(text, "(")
	words := strings.Fields(head)
	if !ok || len(words) != 2 || words[1] != "in" && words[1] != "notin" {
		return r, false
	}
	r.Key, r.Not = words[0], words[1] == "notin"
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.Trim(v, " "); v == "" {
			return r, false
		}
		r.Values = append(r.Values, v)
	}
	return r, true
}

// CheckSelectors checks that every text is a selector in canonical form, and that they are sorted and
// unique.
func CheckSelectors(list []string) error {
	if err := within("selectors", int64(len(list)), 0, MaxSelectors); err != nil {
		return err
	}
	for i, text := range list {
		r, err := ParseSelector(text)
		if err != nil {
			return err
		}
		if one := r.String(); one != text {
			return fmt.Errorf("%w: selector %.140q must be written %q", ErrOutOfBounds, text, one)
		}
		if i > 0 && list[i-1] >= text {
			return fmt.Errorf("%w: selectors %.140q, %.140q are not sorted and unique", ErrOutOfBounds, list[i-1], text)
		}
	}
	return nil
}
