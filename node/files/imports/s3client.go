package imports

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/outward"
)

// defaultRegion is that of servers which have none.
const defaultRegion = "us-east-1"

// objectServer are the two questions that a server is asked. They are functions because the linker keeps all methods of
// a client that stands in a field: 2 MB of the program.
type objectServer struct {
	get  func(context.Context, files.Object, minio.GetObjectOptions) (*objectAnswer, error)
	stat func(context.Context, files.Object) (minio.ObjectInfo, error)
}

// objectAnswer is what a server answers before the bytes, and these.
type objectAnswer struct {
	body   io.ReadCloser
	info   minio.ObjectInfo
	header http.Header
}

// client returns one that asks by way of a transport; each question is one request.
func (s S3) client(by http.RoundTripper) (*minio.Client, error) {
	style := minio.BucketLookupPath
	if s.HostStyle {
		style = minio.BucketLookupDNS
	}
	region := s.Region
	if region == "" {
		region = defaultRegion // else each bucket's is asked for, and the host changed by the answer
	}
	return minio.New(strings.TrimSuffix(s.Endpoint, "/"), &minio.Options{
		Creds:  credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""),
		Secure: !strings.HasPrefix(s.Endpoint, "http://"), Region: region, BucketLookup: style,
		Transport: by, MaxRetries: 1,
	})
}

// newS3 returns where objects are fetched from: it connects as for URLs, with the same checks of addresses, and follows
// no redirections. It is nil if no endpoint is configured, or none that Validate passes.
func (m *Imports) newS3() *objectServer {
	if m.cfg.S3.Endpoint == "" || m.cfg.S3.Validate() != nil {
		return nil
	}
	client, err := m.cfg.S3.client(plainRequests{m.http.Transport})
	if err != nil {
		return nil
	}
	return &objectServer{
		get: func(ctx context.Context, o files.Object, opts minio.GetObjectOptions) (*objectAnswer, error) {
			body, info, header, err := minio.Core{Client: client}.GetObject(ctx, o.Bucket, o.Key, opts)
			return &objectAnswer{body, info, header}, err
		},
		stat: func(ctx context.Context, o files.Object) (minio.ObjectInfo, error) {
			return client.StatObject(ctx, o.Bucket, o.Key, minio.StatObjectOptions{})
		},
	}
}

// plainRequests asks under this program's name, and keeps no cookies.
type plainRequests struct{ by http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t plainRequests) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("User-Agent", outward.UserAgent) // it is not signed
	res, err := t.by.RoundTrip(q)
	if res != nil {
		res.Header.Del("Set-Cookie")
	}
	return res, err
}
