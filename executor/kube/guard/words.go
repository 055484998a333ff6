package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Errors of the questions.
var (
	// ErrForged: a question or an answer is not signed by the attempt's secret.
	ErrForged = errors.New("not signed with the attempt's secret")
	// ErrGarbled: a question or an answer that is none.
	ErrGarbled = errors.New("not understood")
)

// Question is what a guard asks: how long may the attempt live?
type Question struct {
	Attempt string
	// Run is one life of the container: made at its start. Of an attempt one
	// ever begins.
	Run string
	// Nonce is the question's own, so that no answer counts for another one.
	Nonce string
}

// Answer is what the handler says.
type Answer struct {
	// Left is how much longer it may live, from the question on; what counts is
	// when the question was *asked*, by the asker's clock. 0 = nothing is known:
	// who runs keeps what it was told before, who does not run does not begin.
	// In milliseconds on the wire.
	Left time.Duration
	// End: the attempt is over, now.
	End bool
}

// MaxLeft bounds what one answer allows, so that it is known how long a guard
// can live at most about which all else is forgotten.
const MaxLeft = time.Minute

// SecretOf returns the secret of an attempt, for the holder of a handler's key.
func SecretOf(key []byte, attempt string) string { return sign(key, "secret", attempt) }

// TokenOf returns what an attempt's pod shows for its files, for who knows its secret.
func TokenOf(secret, attempt string) string { return sign([]byte(secret), "files", attempt) }

// IsToken reports whether a token is that of an attempt, for the holder of a handler's key.
func IsToken(key []byte, attempt, token string) bool {
	return isName(attempt) && hmac.Equal([]byte(token), []byte(TokenOf(SecretOf(key, attempt), attempt)))
}

func sign(key []byte, parts ...string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(strings.Join(parts, "\n"))) // no part has a newline
	return hex.EncodeToString(m.Sum(nil))
}

func (q Question) sign(secret string) string {
	return sign([]byte(secret), "ask", q.Attempt, q.Run, q.Nonce)
}

// encode returns the question as the query of a URL.
func (q Question) encode(secret string) string {
	return url.Values{"attempt": {q.Attempt}, "run": {q.Run}, "nonce": {q.Nonce}, "sign": {q.sign(secret)}}.Encode()
}

// readQuestion reads what encode wrote, for the holder of a handler's key.
func readQuestion(v url.Values, key []byte) (Question, error) {
	q := Question{Attempt: v.Get("attempt"), Run: v.Get("run"), Nonce: v.Get("nonce")}
	if !isName(q.Attempt) || !isName(q.Run) || !isName(q.Nonce) {
		return q, ErrGarbled
	}
	if !hmac.Equal([]byte(v.Get("sign")), []byte(q.sign(SecretOf(key, q.Attempt)))) {
		return q, ErrForged
	}
	return q, nil
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 200

func (a Answer) words() (what, left string) {
	if what = "live"; a.End {
		what = "end"
	}
	return what, strconv.FormatInt(max(a.Left, 0).Milliseconds(), 10)
}

// encode returns the answer to a question in one line.
func (a Answer) encode(q Question, secret string) string {
	what, left := a.words()
	return fmt.Sprintf("%s %s %s\n", what, left, sign([]byte(secret), "answer", q.Attempt, q.Run, q.Nonce, what, left))
}

// readAnswer reads the answer to q, and believes nobody but the holder of the
// secret.
func readAnswer(text string, q Question, secret string) (a Answer, err error) {
	f := strings.Fields(text)
	if len(text) > maxAnswer || len(f) != 3 || f[0] != "live" && f[0] != "end" {
		return a, ErrGarbled
	}
	ms, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || ms < 0 || ms > MaxLeft.Milliseconds() {
		return a, ErrGarbled
	}
	a = Answer{Left: time.Duration(ms) * time.Millisecond, End: f[0] == "end"}
	what, left := a.words()
	if !hmac.Equal([]byte(f[2]), []byte(sign([]byte(secret), "answer", q.Attempt, q.Run, q.Nonce, what, left))) {
		return Answer{}, ErrForged
	}
	return a, nil
}
