package wire

import "time"

// Token is what is kept of a token of the API; its text is told once.
type Token struct {
	ID      string     `json:"id" doc:"no secret: it stands in lists and logs"`
	Name    string     `json:"name" doc:"what it is for"`
	User    string     `json:"user,omitempty" doc:"whose it is; left out: the site's own"`
	Role    string     `json:"role" enum:"read-only,user,operator"`
	Created *time.Time `json:"created"`
	Expires *time.Time `json:"expires" doc:"null: never"`
	Used    *time.Time `json:"used" doc:"the hour, UTC, in which it was used last; null: never, or of a provider's it is not known"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name string `json:"name" doc:"what it is for: one line of 1 to 100 bytes"`
	User string `json:"user,omitempty" required:"false" doc:"whose it is: 1 to 63 small letters, digits, '.', '_', '-' or '@'; needed with role user"`
	Role string `json:"role" enum:"read-only,user,operator"`
	For  string `json:"for,omitempty" required:"false" doc:"how long it holds, e.g. 90d or 12h; left out: until it is revoked"`
}

// NewToken is a new token with its text, which nobody keeps: it is told once.
type NewToken struct {
	Text string `json:"token" doc:"cst_ID_SECRET_CRC: what is sent as Authorization: Bearer; a secret"`
	Token
}

// Whoami says who asks, as the broker sees it.
type Whoami struct {
	Site  string `json:"site" doc:"whose broker answers"`
	User  string `json:"user,omitempty" doc:"left out: the site's own"`
	Role  string `json:"role" enum:"read-only,user,operator"`
	Token *Token `json:"token" doc:"by which it is known; null: by the operator's socket"`
}
