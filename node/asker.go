package node

import "context"

// Asker is who asks a broker for something. The gate of the API says so, by the token or the connection with which a
// request comes.
type Asker struct {
	// Site whose broker asks; "" = a client of this one.
	Site string
	// User of this site; "" = the token names none: it is the site's own.
	User string
	// Operator reports whether all of this site's jobs are the asker's to see and to end.
	Operator bool
	// Token is the ID of the token, "" = none: another broker, or a program on the operator's socket.
	Token string
}

type askerKey struct{}

// WithAsker says who asks.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerOf returns who asks; nobody, who owns nothing, where that was not said.
func AskerOf(ctx context.Context) Asker {
	a, _ := ctx.Value(askerKey{}).(Asker)
	return a
}
