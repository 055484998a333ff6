package imports

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/cloudshare/cloudshare/node/files"
)

// explainS3 returns why an object did not come, in one line. Of the server's own words it takes no more than a code.
func (m *Imports) explainS3(o files.Object, err error) error {
	var said minio.ErrorResponse
	if !errors.As(err, &said) {
		return failed(plain(err))
	}
	status := fmt.Sprintf("%d %s", said.StatusCode, http.StatusText(said.StatusCode))
	switch {
	case said.StatusCode == 0:
		return failed(fmt.Errorf("its server's answer is not understood: %.100q", said.Message))
	case said.StatusCode == http.StatusPreconditionFailed:
		return errChanged()
	case said.Code == minio.NoSuchBucket:
		return failed(fmt.Errorf("there is no bucket %q", o.Bucket))
	case said.StatusCode == http.StatusNotFound:
		return failed(fmt.Errorf("bucket %q has no object %.300q", o.Bucket, o.Key))
	case said.Region != "" && said.Region != m.region():
		return failed(fmt.Errorf("bucket %q is in region %.40q, not %q: the site's operator says where by data.s3.region",
			o.Bucket, said.Region, m.region()))
	case said.StatusCode == http.StatusForbidden, said.StatusCode == http.StatusUnauthorized:
		return failed(fmt.Errorf("its server denies it (%s, %.60q): there is no such object, or data.s3's key, "+
			"which the site's operator sets, has no right to it", status, said.Code))
	}
	return failed(fmt.Errorf("its server answered %s, %.60q", status, said.Code))
}

func (m *Imports) region() string {
	if m.cfg.S3.Region == "" {
		return defaultRegion
	}
	return m.cfg.S3.Region
}
