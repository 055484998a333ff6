package files

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrObject reports a text that is no s3://BUCKET/KEY.
var ErrObject = errors.New("not the name of an object")

// Object names an object of an object store.
type Object struct {
	Bucket, Key string
}

// ObjectScheme begins the names of objects.
const ObjectScheme = "s3://"

// maxKey is how many bytes of a key the stores allow.
const maxKey = 1024

// bucketName is that of the stores: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html.
var (
	bucketName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	bucketIsNot = regexp.MustCompile(`^[0-9]+(\.[0-9]+){3}$|\.\.|-\.|\.-`)
)

// ParseObject reads s3://BUCKET/KEY. The key is taken as it stands, as the stores' own programs do: nothing in it is
// an escape, a query or a fragment.
func ParseObject(text string) (Object, error) {
	rest, named := strings.CutPrefix(text, ObjectScheme)
	bucket, key, _ := strings.Cut(rest, "/")
	o := Object{Bucket: bucket, Key: key}
	switch {
	case !named || key == "":
		return o, fmt.Errorf("%w: must be s3://BUCKET/KEY", ErrObject)
	case len(key) > maxKey:
		return o, fmt.Errorf("%w: its key has more than %d bytes", ErrObject, maxKey)
	}
	return o, o.check()
}

// ParseObjects reads s3://BUCKET or s3://BUCKET/PREFIX, which name all objects in a bucket, or in a folder of it.
func ParseObjects(text string) (Object, error) {
	rest, named := strings.CutPrefix(text, ObjectScheme)
	bucket, prefix, _ := strings.Cut(rest, "/")
	o := Object{Bucket: bucket, Key: strings.TrimSuffix(prefix, "/")}
	if !named || len(prefix) > maxKey || prefix != "" && o.Key == "" {
		return o, fmt.Errorf("%w: must be s3://BUCKET or s3://BUCKET/PREFIX", ErrObject)
	}
	return o, o.check()
}

// check refuses what a server could take for something else than it says.
func (o Object) check() error {
	switch {
	case !bucketName.MatchString(o.Bucket) || bucketIsNot.MatchString(o.Bucket):
		return fmt.Errorf("%w: %.70q is no bucket: 3 to 63 letters a-z, digits, '-' and '.'", ErrObject, o.Bucket)
	case !utf8.ValidString(o.Key) || strings.ContainsFunc(o.Key, unicode.IsControl):
		return fmt.Errorf("%w: its key has bytes that are no UTF-8, or control characters", ErrObject)
	case hasDots(o.Key):
		return fmt.Errorf("%w: its key has a part . or .., which servers may take for a folder", ErrObject)
	}
	return nil
}

// hasDots reports whether a part of a key is . or .., also for who takes \ for /.
func hasDots(key string) bool {
	for part := range strings.FieldsFuncSeq(key, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// Within reports whether o is one of the objects that where names (ParseObjects): a prefix ends at a slash, so that
// s3://b/ref names s3://b/ref and s3://b/ref/x, but not s3://b/reference.
func (o Object) Within(where Object) bool {
	below, begins := strings.CutPrefix(o.Key, where.Key)
	return o.Bucket == where.Bucket && begins && (where.Key == "" || below == "" || below[0] == '/')
}
