package auth

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// basicToken returns the token that stands as the password of Basic, which clients of TES know and nobody else may
// send: browsers keep it, and send it with whatever page asks for. The user's name is not looked at. No browser asks
// for it, since no answer of this broker challenges to it.
func basicToken(r *http.Request, scheme, text string) (token string, basic bool) {
	if !strings.EqualFold(scheme, "Basic") || !strings.HasPrefix(r.URL.Path, rootOfTES) {
		return "", false
	}
	pair, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", true
	}
	_, token, _ = strings.Cut(string(pair), ":")
	return token, true
}
