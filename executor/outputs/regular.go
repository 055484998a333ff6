package outputs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// asFile are the flags with which neither a link is followed nor a pipe waited for.
const asFile = unix.O_NOFOLLOW | unix.O_NONBLOCK

// OpenRegular opens a file that tasks could have replaced: an error if it is a pipe,
// which would keep its reader forever, a link, or anything else but a file.
func OpenRegular(path string, flags int) (*os.File, error) {
	return requireRegular(os.OpenFile(path, flags|asFile, 0))
}

// requireRegular closes what was opened and is no file.
func requireRegular(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.Name())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
