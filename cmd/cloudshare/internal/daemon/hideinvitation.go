package daemon

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// hideInvitation begins this program again with the invitation in a file that has no name, if it stands in the command
// line: everybody on the machine may read that (ps), and whoever does so first is the site. It returns if there is
// nothing to hide, or if it could not be hidden.
func hideInvitation(join string) error {
	args, found := withoutText(os.Args, join)
	if !found {
		return nil
	}
	fd, err := unix.MemfdCreate("invitation", 0) // it outlives the exec
	if err == nil {
		_, err = unix.Write(fd, []byte(join))
	}
	var self string
	if err == nil {
		self, err = os.Executable()
	}
	if err == nil {
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, hidden, fmt.Sprintf("@/proc/self/fd/%d", fd))
		}
		err = syscall.Exec(self, args, os.Environ())
	}
	return cli.Usage("join: the invitation in the command line, which others can read, cannot be hidden (%w): "+
		"write it into a file, and give --join @FILE", err)
}

// hidden stands for the text until its file is there.
const hidden = "\x00"

// withoutText returns arguments without an invitation's text, and whether it was there.
func withoutText(args []string, join string) (out []string, found bool) {
	if join == "" || join == "-" || strings.HasPrefix(join, "@") {
		return args, false
	}
	out = slices.Clone(args)
	for i, arg := range out {
		out[i] = strings.ReplaceAll(arg, join, hidden)
		found = found || out[i] != arg
	}
	return out, found
}
