package filesend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// pollImport is how often the broker is asked how far an import is.
const pollImport = time.Second

// Import has the broker fetch what a URL has, and waits until it has it. sha256 is what it must have, "" = anything.
func (s *Sender) Import(ctx context.Context, from, sha256 string) error {
	text, err := json.Marshal(struct {
		URL    string `json:"url"`
		SHA256 string `json:"sha256,omitempty"`
	}{from, sha256})
	if err != nil {
		return err
	}
	begun, told := false, int64(0)
	defer func() {
		if begun {
			s.progress.End()
		}
	}()
	for {
		here, size, received, err := s.askImport(ctx, string(text))
		if err != nil {
			return fmt.Errorf("have the broker fetch %s: %w", from, err)
		}
		if here {
			return nil
		}
		if !begun {
			s.progress.Begin("fetching", size)
			begun = true
		}
		if received > told {
			s.progress.Done(received - told)
			told = received
		}
		if err := s.pause(ctx, pollImport); err != nil {
			return err
		}
	}
}

// askImport asks once: whether it is there, else how far it is.
func (s *Sender) askImport(ctx context.Context, body string) (here bool, size, received int64, err error) {
	var answer struct {
		Received int64 `json:"received"`
		Size     int64 `json:"size"`
	}
	err = s.again(ctx, func() error {
		res, asked := s.broker.Ask(ctx, http.MethodPost, "/v1/imports", nil, strings.NewReader(body),
			http.Header{"Content-Type": {wire.TypeJSON}})
		if asked != nil {
			return asked
		}
		defer res.Body.Close()
		here = res.StatusCode == http.StatusOK
		if bad := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&answer); bad != nil {
			return fmt.Errorf("%w: %w", client.ErrBadAnswer, bad)
		}
		return nil
	})
	return here, answer.Size, answer.Received, err
}
