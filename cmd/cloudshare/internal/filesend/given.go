package filesend

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/node/files"
)

// Source is what an input is to be made of.
type Source struct {
	// Local names a file or directory of this machine; of Each it is a pattern of files.
	Local string
	// Path is where tasks find it.
	Path string
	// Each: each task gets one of the files, in the order of their names.
	Each bool
}

// ParseInput reads FILE[:PATH]: without a PATH the tasks find it under its own name. A file whose name holds a colon is
// meant whole if it is there.
func ParseInput(text string) (Source, error) {
	local, path := text, ""
	if _, err := os.Lstat(text); err != nil {
		if i := strings.LastIndexByte(text, ':'); i >= 0 {
			local, path = text[:i], text[i+1:]
			if path == "" {
				return Source{}, fmt.Errorf("%q has no path behind its colon: give FILE or FILE:PATH", text)
			}
		}
	}
	if local == "" {
		return Source{}, fmt.Errorf("%q names no file: give FILE or FILE:PATH", text)
	}
	if path == "" {
		whole, err := filepath.Abs(local)
		if err != nil {
			return Source{}, fmt.Errorf("find %s: %w", local, err)
		}
		path = filepath.Base(whole)
	}
	return Source{Local: local, Path: path}, nil
}

// ParseEach reads PATTERN:PATH.
func ParseEach(text string) (Source, error) {
	i := strings.LastIndexByte(text, ':')
	if i <= 0 || i == len(text)-1 {
		return Source{}, fmt.Errorf("%q: must be PATTERN:PATH, as in 'data/*.csv:in.csv'", text)
	}
	return Source{Local: text[:i], Path: text[i+1:], Each: true}, nil
}

// ParseURL reads URL:PATH; the URL is https://… or s3://BUCKET/KEY, whose key may have any letters.
func ParseURL(text string) (from, path string, err error) {
	i := strings.LastIndexByte(text, ':')
	if i > 0 {
		from, path = text[:i], text[i+1:]
	}
	if strings.HasPrefix(text, files.ObjectScheme) {
		if _, err = files.ParseObject(from); err != nil || path == "" {
			return "", "", fmt.Errorf("%q: must be s3://BUCKET/KEY:PATH, as in s3://data/ref.fa:ref.fa", text)
		}
		return from, path, nil
	}
	u, err := url.Parse(from)
	if err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "ftp" || u.Scheme == "s3") {
		return "", "", fmt.Errorf("%q: brokers fetch https and s3 alone, since nothing vouches for what comes by %s: give its "+
			"https address, or fetch it here and send it by --input", text, u.Scheme)
	}
	if err != nil || u.Scheme != "https" || u.Host == "" || u.Path == "" || path == "" {
		return "", "", fmt.Errorf("%q: must be URL:PATH, as in https://data.example.org/ref.fa:ref.fa or s3://data/ref.fa:ref.fa", text)
	}
	return from, path, nil
}
