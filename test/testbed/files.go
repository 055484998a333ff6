package testbed

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Input is what each task finds at a path: a file by its SHA-256, or a directory by that of its manifest.
type Input struct {
	Path     string `json:"path"`
	SHA256   string `json:"sha256,omitempty"`
	Manifest string `json:"manifest,omitempty"`
}

// Outputs are the files that each task leaves.
type Outputs struct {
	Paths []string `json:"paths"`
	Max   string   `json:"max,omitempty"`
}

// ResultFile is a file that a task has left.
type ResultFile struct {
	Task   int
	Path   string
	Size   int64
	SHA256 string `json:"sha256"`
}

// PutBlob has the site keep a small file.
func (s *Site) PutBlob(ctx context.Context, sha256 string, content []byte) error {
	h := http.Header{"Content-Type": {"application/octet-stream"}}
	_, _, err := s.Do(ctx, http.MethodPut, "/v1/blobs/"+sha256, h, content)
	return err
}

// Upload has the site keep a file of any size, by the protocol tus.
func (s *Site) Upload(ctx context.Context, sha256 string, size int64, r io.Reader) error {
	h := http.Header{
		"Tus-Resumable": {"1.0.0"}, "Upload-Length": {strconv.FormatInt(size, 10)},
		"Upload-Metadata": {"sha256 " + base64.StdEncoding.EncodeToString([]byte(sha256))},
	}
	_, answer, err := s.Do(ctx, http.MethodPost, "/v1/uploads", h, nil)
	if err != nil {
		return err
	}
	if answer.Get("Upload-Offset") == strconv.FormatInt(size, 10) {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.URL.String()+answer.Get("Location"), r)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	req.ContentLength = size
	req.Header = http.Header{
		"Tus-Resumable": {"1.0.0"}, "Upload-Offset": {"0"}, "Content-Type": {"application/offset+octet-stream"},
	}
	s.Authorize(req.Header)
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("upload %d bytes: %w", size, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return &HTTPError{Status: resp.StatusCode, Body: string(said)}
	}
	return nil
}

// ResultFiles returns the first files of those that a job has left.
func (s *Site) ResultFiles(ctx context.Context, id string) ([]ResultFile, error) {
	answer, _, err := s.Do(ctx, http.MethodGet, "/v1/jobs/"+id+"/files?limit=1000", nil, nil)
	if err != nil {
		return nil, err
	}
	var page list[ResultFile]
	if err = json.Unmarshal(answer, &page); err != nil {
		return nil, fmt.Errorf("read the files of %s: %w", id, err)
	}
	return page.Items, nil
}
