package watchdog

import (
	"errors"
	"io"
	"iter"
	"os"
)

// batch is how many names are read at a time: there may be millions.
const batch = 512

// Names are those in an open folder, from where it was read last. If they cannot be read to the end, the last one is
// none, with the error.
func Names(folder *os.File) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			names, err := folder.Readdirnames(batch)
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield("", err)
				}
				return
			}
		}
	}
}
