// Package access keeps who may ask a broker: the tokens of its API, as a file of the site's data folder holds them
// (before step 1 of a job's way). A token is a random secret with a name, a role and perhaps an end; of the secret
// only a hash is kept. It holds at its own site's broker alone. What a role may do, and how a token comes here, the
// API decides (package api); the package imports nothing of the broker.
package access
