package webtest

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/node"
)

// ResultFiles implements web.Files.
func (b *Broker) ResultFiles(_ context.Context, job *node.Job, most int) ([]web.ResultFile, bool, error) {
	list := b.Left
	for task := range job.Counts["succeeded"] {
		if b.Left != nil {
			break
		}
		list = append(list, web.ResultFile{Task: task, Path: fmt.Sprintf("out/frame-%03d.png", task), Size: 3 << 20},
			web.ResultFile{Task: task, Path: "log.txt", Size: int64(task)})
	}
	return list[:min(most, len(list))], len(list) > most, b.LeftErr
}

// FilesUse implements web.Files.
func (b *Broker) FilesUse() []node.SpaceUse {
	return []node.SpaceUse{
		{Space: "own", Bytes: 5 << 30, Max: 100 << 30, Blobs: 1234},
		{Space: "cache", Bytes: 1 << 20, Max: 50 << 30, Blobs: 1},
		{Space: "outgoing", Max: 50 << 30},
	}
}
