package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	file := flag.String("delay", "", "file with the time that each sync takes longer, e.g. 100ms")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: slowfs -delay FILE FOLDER MOUNTPOINT")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 || *file == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(delay{*file}, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "slowfs:", err)
		os.Exit(1)
	}
}

// run serves until the mount point is unmounted; SIGTERM and SIGINT detach it, and
// what is still open goes on.
func run(d delay, folder, at string) error {
	server, err := mount(d, folder, at)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	ended := make(chan struct{})
	go func() {
		server.Wait()
		close(ended)
	}()
	fmt.Println("mounted")
	for {
		select {
		case <-stop:
			if err = syscall.Unmount(at, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
				return fmt.Errorf("unmount %s: %w", at, err)
			}
		case <-ended:
			return nil
		}
	}
}

// mount shows folder at a mount point. It is left to unmount, which ends the server.
func mount(d delay, folder, at string) (*fuse.Server, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(folder, &st); err != nil {
		return nil, fmt.Errorf("look at %s: %w", folder, err)
	}
	root := &fs.LoopbackRoot{Path: folder, Dev: st.Dev}
	root.NewNode = func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{fs.LoopbackNode{RootData: r}, d}
	}
	root.RootNode = root.NewNode(root, nil, "", &st)
	valid := time.Second // nobody else changes the folder
	server, err := fs.Mount(at, root.RootNode, &fs.Options{
		AttrTimeout: &valid, EntryTimeout: &valid,
		MountOptions: fuse.MountOptions{
			DirectMountStrict: true, FsName: "slowfs", Name: "slowfs",
			// Sandboxes of a run have another user, who gets as far as modes let it.
			AllowOther: true, Options: []string{"default_permissions"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w: it takes root and /dev/fuse", at, err)
	}
	return server, nil
}

// node is a file or a folder behind the mount point.
type node struct {
	fs.LoopbackNode
	slow delay
}

var _ fs.NodeFsyncer = (*node)(nil)

// Fsync takes its time and then syncs a file, for fsync and fdatasync: what it
// acknowledges is durable, as on any disk.
func (n *node) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	n.slow.wait()
	if s, ok := f.(fs.FileFsyncer); ok {
		return s.Fsync(ctx, flags)
	}
	return syscall.ENOTSUP
}
