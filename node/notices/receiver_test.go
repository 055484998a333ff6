package notices

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Receiver is an example of one: it takes a notice that is signed with its key and new, once. It stands in the user
// guide.
type Receiver struct {
	Key   string // whsec_…, from the site's operator
	Ended func(job, state string)

	mu   sync.Mutex
	seen map[string]bool // a real one keeps them for as long as notices are sent, a day by default
}

// tolerance is how old a notice may be: with it, one that somebody has recorded is of no use later.
const tolerance = 5 * time.Minute

var errForged = errors.New("it is not signed with our key, or old")

// ServeHTTP implements http.Handler.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	if err := rc.verify(r.Header, body, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	var event struct {
		ID, Type string
		Data     struct{ Job, State string }
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rc.mu.Lock()
	again := rc.seen[event.ID]
	if rc.seen == nil {
		rc.seen = map[string]bool{}
	}
	rc.seen[event.ID] = true
	rc.mu.Unlock()
	if !again {
		rc.Ended(event.Data.Job, event.Data.State)
	}
	w.WriteHeader(http.StatusNoContent)
}

// verify checks who sends, and when.
func (rc *Receiver) verify(h http.Header, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(rc.Key, "whsec_"))
	if err != nil {
		return err
	}
	stamp, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(stamp, 0)).Abs() > tolerance {
		return errForged
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, h.Get("webhook-id")+"."+h.Get("webhook-timestamp")+"."+string(body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, got := range strings.Fields(h.Get("webhook-signature")) { // several while keys change
		if hmac.Equal([]byte(got), []byte(want)) {
			return nil
		}
	}
	return errForged
}
