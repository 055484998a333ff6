package blobs

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/files"
)

// FuzzMetadata: whatever a client sends, one hash comes of it or a refusal, and only of what says so.
func FuzzMetadata(f *testing.F) {
	hash := base64.StdEncoding.EncodeToString([]byte(files.HashOf(nil).String()))
	for _, text := range []string{
		"sha256 " + hash, "sha256 " + hash + ",sha256 " + hash, "a,sha256 " + hash, " sha256  " + hash, "sha256", ",", "", "sha256 " + hash + "=",
	} {
		f.Add(text, "0")
	}
	f.Add("sha256 "+hash, "1099511627777")
	f.Add("sha256 "+hash, "-0")
	f.Fuzz(func(t *testing.T, text, length string) {
		h := http.Header{headerMetadata: {text}, headerLength: {length}}
		b, err := uploadOf(h)
		if err != nil {
			return
		}
		packed := base64.StdEncoding.EncodeToString([]byte(b.Hash.String()))
		if strings.Count(text, packed) != 1 || strconv.FormatInt(b.Size, 10) != length || b.Check() != nil {
			t.Errorf("%q, %q is %+v", text, length, b)
		}
	})
}

// FuzzNumber: an offset has one text.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"0", "00", "+1", "-1", "1e3", " 1", "9223372036854775808", "0x1", "1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := number(http.Header{headerOffset: {text}}, headerOffset)
		if err == nil && (n < 0 || strconv.FormatInt(n, 10) != text) {
			t.Errorf("%q is %d", text, n)
		}
	})
}

// TestNumberStandsOnce: of two a proxy in front may have looked at the other one.
func TestNumberStandsOnce(t *testing.T) {
	for _, values := range [][]string{nil, {"1", "1"}, {"1", "2"}} {
		if n, err := number(http.Header{headerOffset: values}, headerOffset); err == nil {
			t.Errorf("%v is %d", values, n)
		}
	}
}
