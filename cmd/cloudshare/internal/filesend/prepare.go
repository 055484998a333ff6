package filesend

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/files"
)

// blob is bytes that a broker is to have.
type blob struct {
	files.Blob
	file    *found // nil: content
	content []byte
}

// name says whose bytes they are.
func (b *blob) name() string {
	if b.file != nil {
		return b.file.local
	}
	return "the list of a directory's files"
}

// part is a source with its files.
type part struct {
	Source
	dir   bool
	files []found
}

// Prepare reads the sources and returns their inputs, in order, and how many tasks want one file each: 0 if no source
// is Each. Nothing is sent yet.
func (s *Sender) Prepare(ctx context.Context, sources []Source) (inputs []wire.SpecInput, tasks int, err error) {
	parts := make([]part, len(sources))
	var all []*found
	for i, src := range sources {
		p := &parts[i]
		p.Source = src
		if p.files, p.dir, err = s.scan(src); err != nil {
			return nil, 0, err
		}
		if src.Each && tasks != 0 && tasks != len(p.files) {
			return nil, 0, fmt.Errorf("%s names %d files, and another pattern %d: each task gets one of each",
				src.Local, len(p.files), tasks)
		}
		if src.Each {
			tasks = len(p.files)
		}
		p.place()
		for n := range p.files {
			all = append(all, &p.files[n])
		}
	}
	if err = s.hashAll(ctx, all); err != nil {
		return nil, 0, err
	}
	for i := range parts {
		in, err := s.input(&parts[i])
		if err != nil {
			return nil, 0, err
		}
		inputs = append(inputs, in)
	}
	return inputs, tasks, nil
}

// place decides which contents stand in the manifest, before they are read.
func (p *part) place() {
	if !p.dir {
		return
	}
	left := int64(files.MaxInlineSum)
	for i := range p.files {
		size := p.files[i].info.Size()
		if p.files[i].inline = size <= files.MaxInline && size <= left; p.files[i].inline {
			left -= size
		}
	}
}

// input returns the input that a source is, and notes what it needs.
func (s *Sender) input(p *part) (wire.SpecInput, error) {
	in := wire.SpecInput{Path: p.Path}
	if !p.dir {
		f := &p.files[0]
		size := f.info.Size()
		in.SHA256, in.Size, in.Executable = f.hash.String(), &size, f.executable()
		s.need(blob{Blob: f.blob(), file: f})
		return in, nil
	}
	manifest, err := p.manifest()
	if err != nil {
		return in, fmt.Errorf("send input %s: %w", p.Local, err)
	}
	for i := range p.files {
		if f := &p.files[i]; !f.inline {
			s.need(blob{Blob: f.blob(), file: f})
		}
	}
	list := blob{Blob: files.BlobOf(manifest), content: manifest}
	s.need(list)
	if in.Size = &list.Size; p.Each {
		in.Each = list.Hash.String()
	} else {
		in.Manifest = list.Hash.String()
	}
	return in, nil
}

func (p *part) manifest() ([]byte, error) {
	var b bytes.Buffer
	w := files.NewManifestWriter(&b)
	for i := range p.files {
		f := &p.files[i]
		e := files.Entry{Path: f.path, Executable: f.executable(), Size: f.info.Size(), Hash: f.hash}
		if f.inline {
			e.Inline = f.content[:len(f.content):len(f.content)]
		}
		if err := w.Add(e); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// need notes a blob once, however often it is met.
func (s *Sender) need(b blob) {
	name := b.Hash.String()
	if _, met := s.blobs[name]; !met {
		s.blobs[name] = b
		s.order = append(s.order, name)
	}
}
