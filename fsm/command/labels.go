package command

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Bounds of labels and selectors. Names follow the rules of Kubernetes, so that the labels of its nodes
// can be used.
const (
	// MaxLabels bounds the labels of one machine, MaxLabelText the bytes of all of them.
	MaxLabels    = 32
	MaxLabelText = 2048
	// MaxLabelKey bounds the bytes of a key: a prefix, a slash, and MaxLabelValue for the rest.
	MaxLabelKey = 128
	// MaxLabelValue bounds the bytes of a value.
	MaxLabelValue = 63
	// MaxLabelSets bounds the different sets of labels in one offer.
	MaxLabelSets = 1000
	// MaxSelectors bounds the selectors of one job, MaxSelectorText the bytes and MaxSelectorValues
	// the values of one selector.
	MaxSelectors      = 16
	MaxSelectorText   = 512
	MaxSelectorValues = 16
	// MaxSlots bounds the tasks that a machine may run at once.
	MaxSlots = 1_000_000
)

// Labels are a machine's labels as its site states them, in one text: KEY=VALUE in the order of the
// keys, separated by commas; "" means none. So they have one form, can be compared, and machines of an
// offer with equal labels share one text.
type Labels string

// LabelsOf writes labels. The error names the first that is out of bounds.
func LabelsOf(m map[string]string) (Labels, error) {
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k + "=" + m[k])
		if err := checkLabel(k, m[k]); err != nil {
			return "", err
		}
	}
	l := Labels(b.String())
	return l, l.Validate()
}

// Validate checks bounds, form and order.
func (l Labels) Validate() error {
	if err := within("bytes of labels", int64(len(l)), 0, MaxLabelText); err != nil || l == "" {
		return err
	}
	last, n := "", int64(0)
	for pair := range strings.SplitSeq(string(l), ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%w: label %.140q is not KEY=VALUE", ErrOutOfBounds, pair)
		}
		if err := checkLabel(key, value); err != nil {
			return err
		}
		if key <= last {
			return fmt.Errorf("%w: labels %.128q, %.128q are not sorted and unique", ErrOutOfBounds, last, key)
		}
		last = key
		n++
	}
	return within("labels", n, 0, MaxLabels)
}

// All yields the labels in the order of their keys.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for rest := string(l); rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, ",")
			if key, value, _ := strings.Cut(pair, "="); !yield(key, value) {
				return
			}
		}
	}
}

// Label is one of a machine's labels.
type Label struct{ Key, Value string }

// Pairs are parsed labels, in the order of their keys.
type Pairs []Label

// Pairs parses the labels.
//
// REQUIRES: they are valid.
func (l Labels) Pairs() (pairs Pairs) {
	for key, value := range l.All() {
		pairs = append(pairs, Label{key, value})
	}
	return pairs
}

// Get returns a label's value, and whether there is one.
func (p Pairs) Get(key string) (value string, ok bool) {
	i, ok := slices.BinarySearchFunc(p, key, func(l Label, key string) int { return strings.Compare(l.Key, key) })
	if !ok {
		return "", false
	}
	return p[i].Value, true
}

func checkLabel(key, value string) error {
	if !isLabelKey(key) {
		return fmt.Errorf("%w: label %.140q has no key as Kubernetes has them: "+
			"letters, digits, '-', '_' and '.', at most %d, perhaps behind a lower-case domain and '/', at most %d together",
			ErrOutOfBounds, key+"="+value, MaxLabelValue, MaxLabelKey)
	}
	if !isLabelValue(value) {
		return fmt.Errorf("%w: value %.80q of label %s: must be empty or letters, digits, '-', '_' and '.', "+
			"at most %d, the first and last a letter or digit",
			ErrOutOfBounds, value, key, MaxLabelValue)
	}
	return nil
}

// isLabelKey reports whether key has the form [PREFIX/]NAME, the prefix a domain in lower case.
func isLabelKey(key string) bool {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		return isLabelName(key)
	}
	for part := range strings.SplitSeq(prefix, ".") {
		if !ValidSite(part) {
			return false
		}
	}
	return isLabelName(name) && len(key) <= MaxLabelKey
}

func isLabelValue(v string) bool { return v == "" || isLabelName(v) }

func isLabelName(s string) bool {
	if s == "" || len(s) > MaxLabelValue || !isAlnum(s[0]) || !isAlnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
