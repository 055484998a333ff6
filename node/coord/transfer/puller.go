package transfer

import "context"

// Puller brings blobs from the brokers of other sites: see Client, which is one.
type Puller interface {
	Pull(ctx context.Context, site, addr string, index uint64, b Blob, to Sink) error
	PullBatch(ctx context.Context, site, addr string, index uint64, blobs []Blob,
		take func(i int, content []byte, refused error) error) error
}

var _ Puller = (*Client)(nil)

// Counted returns a sink that tells how many bytes each piece has that another one took.
func Counted(to Sink, took func(bytes int)) Sink { return countedSink{to, took} }

type countedSink struct {
	Sink
	took func(bytes int)
}

// WritePiece implements Sink.
func (c countedSink) WritePiece(i int, b []byte) error {
	err := c.Sink.WritePiece(i, b)
	if err == nil {
		c.took(len(b))
	}
	return err
}
