package notices

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"
)

// The headers of Standard Webhooks (github.com/standard-webhooks/standard-webhooks, spec 1.0.0).
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// keyPrefix begins a key's text, as Standard Webhooks has it.
const keyPrefix = "whsec_"

// KeyOf returns the key that a user's notices are signed with; the user "" has those of the site's own jobs. It is made
// of the site's secret: who knows one user's key can make no notice of another's.
func KeyOf(secret []byte, user string) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte("cloudshare notices of user\x00" + user)) // a hash takes all
	return h.Sum(nil)
}

// KeyText returns a key's text, as receivers are given it.
func KeyText(key []byte) string { return keyPrefix + base64.StdEncoding.EncodeToString(key) }

// sign sets the headers that say who sends a body, and when.
func sign(h http.Header, key []byte, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(id + "." + stamp + "."))
	_, _ = mac.Write(body)
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, stamp)
	h.Set(HeaderSignature, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
