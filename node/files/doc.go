// Package files has the words for files that travel with tasks (steps 1 and 6 of a job's way): a blob is named by the
// SHA-256 of its bytes and their number, a directory by its manifest, and a path says where a file stands below a
// task's work folder. All is pure: no disk, no network, no clock. It imports the executors' contract, by whose rules
// paths are checked, and the commands' bounds.
//
//	w := files.NewManifestWriter(f)
//	err := w.Add(files.Entry{Path: "out/a.csv", Size: 9, Hash: h, Inline: content})
//	err = w.Close()
package files

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Bounds of what one task may bring and leave.
const (
	// MaxInputs is how many inputs a job's spec may name.
	MaxInputs = 256
	// MaxEntries is how many files a manifest may name.
	MaxEntries = executor.MaxFiles
	// MaxManifest is how many bytes a manifest may take.
	MaxManifest = command.MaxManifest
	// MaxPath is how many bytes a path may take, MaxName how many one name in it: file systems take no longer ones.
	MaxPath = executor.MaxPath
	MaxName = executor.MaxName
	// MaxFile is how many bytes a file may have.
	MaxFile = 1 << 40
	// PieceBytes is the length of the pieces in which blobs travel and are put together; the last one may be shorter.
	PieceBytes = 8 << 20
	// MaxTask is how many bytes all files of a task may have, and so those of a manifest.
	MaxTask = command.MaxOutputBytes
	// MaxInline is how many bytes a file may have whose content stands in the manifest.
	MaxInline = 16 << 10
	// MaxInlineSum is how many bytes of contents a manifest may have: half of it is for paths and hashes.
	MaxInlineSum = MaxManifest / 2
)
