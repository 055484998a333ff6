//go:build guest

package guest

import (
	"encoding/binary"
	"os"
	"os/exec"
	"testing"
)

// Of the guest's disk, in sectors of 512 bytes: one partition, as an installer makes it.
const (
	sector    = 512
	partBegin = 2048
	partEnd   = 1536 << 11 // 1.5 GiB, of which little is written
)

// makeDisk writes a disk with an ext4 partition, which holds what a folder does, "" = nothing: what is on the first
// file system of a guest, an initramfs, comes from no disk.
func makeDisk(t *testing.T, path, files string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err = f.WriteAt(partitionTable(), 0); err == nil {
		err = f.Truncate(partEnd * sector)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-q", "-F", "-t", "ext4", "-E", "offset=1048576,root_owner=0:0"}
	if files != "" {
		args = append(args, "-d", files)
	}
	cmd := exec.CommandContext(t.Context(), program("mke2fs", t), append(args, path, "1534m")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mke2fs: %v\n%s", err, out)
	}
}

// partitionTable is a first sector with one partition of Linux.
func partitionTable() []byte {
	b := make([]byte, sector)
	entry := b[446:]
	entry[4] = 0x83
	binary.LittleEndian.PutUint32(entry[8:], partBegin)
	binary.LittleEndian.PutUint32(entry[12:], partEnd-partBegin)
	b[510], b[511] = 0x55, 0xaa
	return b
}
