package box

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/executor/staging"
	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// takeFiles makes the files that the handler has put into the attempt's folders this user's
// own. Nothing of the task runs yet.
func (b *boxed) takeFiles() error {
	for _, dir := range b.order.Staged {
		if err := staging.TakeOver(dir); err != nil {
			return &watchdog.Trouble{Cause: err}
		}
	}
	return nil
}

// maxOpened bounds what openUp looks at.
const maxOpened = 1 << 20

// openUp lets the handler, which may be another user, read what the task has left, and
// remove it: nobody else gets past the folder above. What cannot be opened up it hears of
// when it reads.
func openUp(dir string) {
	_ = os.Chmod(dir, 0o777)
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; seen > maxOpened {
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // the rest is opened up
		}
		switch {
		case e.IsDir(): // called before it is read
			_ = os.Chmod(path, 0o777)
		case e.Type().IsRegular():
			if st, err := os.Lstat(path); err == nil && st.Mode()&0o444 != 0o444 {
				_ = os.Chmod(path, st.Mode()&0o777|0o444)
			}
		}
		return nil
	})
}
