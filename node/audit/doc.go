// Package audit keeps a site's record of who did what: one JSON line for each request that changes something and that
// the API admitted, in files that are only appended to, bounded in number and size. It never leaves the site. It knows
// nothing of requests and imports nothing of the broker.
package audit
