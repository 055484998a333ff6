package filesend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/files"
)

const (
	// maxAsked bounds the hashes in one question.
	maxAsked = 1000
	// maxWhole is how many bytes are sent in one request; more is sent in pieces of so many.
	maxWhole = files.PieceBytes
	// parallel is how many blobs are sent at once.
	parallel = 8
	// tries is how often one request is sent if no answer comes.
	tries = 7
)

// Send sends what the inputs that were prepared need and the broker has not, and returns how many bytes that were.
func (s *Sender) Send(ctx context.Context) (sent int64, err error) {
	missing, err := s.missing(ctx)
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	var sum int64
	for _, b := range missing {
		sum += b.Size
	}
	s.progress.Begin("sending", sum)
	defer s.progress.End()
	var bytes atomic.Int64
	err = cli.InParallel(ctx, len(missing), parallel, func(ctx context.Context, i int) error {
		failed := s.sendBlob(ctx, &missing[i])
		if failed == nil {
			bytes.Add(missing[i].Size)
		}
		return failed
	})
	return bytes.Load(), err
}

// missing asks which blobs the broker has not.
func (s *Sender) missing(ctx context.Context) (list []blob, err error) {
	for names := range slices.Chunk(s.order, maxAsked) {
		var answer struct {
			Missing []string `json:"missing"`
		}
		if err = s.askJSON(ctx, "/v1/blobs/missing", map[string]any{"sha256": names}, &answer); err != nil {
			return nil, fmt.Errorf("ask what the broker has: %w", err)
		}
		for _, name := range answer.Missing {
			b, asked := s.blobs[name]
			if !asked {
				return nil, fmt.Errorf("ask what the broker has: %w: it misses what nobody named", client.ErrBadAnswer)
			}
			list = append(list, b)
		}
	}
	return list, nil
}

// askJSON posts a question and reads the answer.
func (s *Sender) askJSON(ctx context.Context, path string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return s.again(ctx, func() error {
		res, err := s.broker.Ask(ctx, http.MethodPost, path, nil, bytes.NewReader(text),
			http.Header{"Content-Type": {wire.TypeJSON}})
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(answer); err != nil {
			return fmt.Errorf("%w: %w", client.ErrBadAnswer, err)
		}
		return nil
	})
}

// again sends a request as long as no answer comes, and the tries last.
func (s *Sender) again(ctx context.Context, send func() error) error {
	return cli.Retry(ctx, tries, s.pause, cli.IsUnanswered, send)
}

func (s *Sender) sendBlob(ctx context.Context, b *blob) error {
	if b.Size > maxWhole {
		return s.sendPieces(ctx, b)
	}
	content, err := b.read()
	if err != nil {
		return err
	}
	err = s.again(ctx, func() error {
		path := "/v1/blobs/" + b.Hash.String()
		res, asked := s.broker.Ask(ctx, http.MethodPut, path, nil, bytes.NewReader(content), octets())
		if asked != nil {
			return asked
		}
		return res.Body.Close()
	})
	if err != nil {
		return b.failed(err)
	}
	s.progress.Done(b.Size)
	return nil
}

// failed words why a blob could not be sent. That the broker got other bytes means that the file has changed.
func (b *blob) failed(err error) error {
	var problem *wire.Problem
	if errors.As(err, &problem) && problem.Type == wire.ProblemPrefix+"wrong-hash" {
		return fmt.Errorf("%s %w", b.name(), ErrChanged)
	}
	return fmt.Errorf("send %s: %w", b.name(), err)
}

func octets() http.Header { return http.Header{"Content-Type": {"application/octet-stream"}} }

// read returns a small blob's bytes, as they were hashed.
func (b *blob) read() ([]byte, error) {
	if b.file == nil {
		return b.content, nil
	}
	file, err := openUnchanged(b.file.local, b.file.info)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, b.Size+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", b.file.local, err)
	}
	if files.BlobOf(content) != b.Blob {
		return nil, fmt.Errorf("%s %w", b.file.local, ErrChanged)
	}
	return content, nil
}
