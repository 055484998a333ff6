package files

import (
	"errors"
	"io"
	"iter"
)

// All yields the entries that are left, and in the place of the next one the error that ends them: without one the
// manifest was one to its end. What was yielded before an error is not to be used.
func (m *ManifestReader) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			e, err := m.Next()
			if errors.Is(err, io.EOF) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Blobs reads to the end, and returns the hashes of the files that do not stand in the manifest itself, each once, in
// its order.
func (m *ManifestReader) Blobs() (list []Hash, err error) {
	seen := map[Hash]bool{}
	for e, err := range m.All() {
		if err != nil {
			return nil, err
		}
		if e.Inline == nil && !seen[e.Hash] {
			seen[e.Hash] = true
			list = append(list, e.Hash)
		}
	}
	return list, nil
}
