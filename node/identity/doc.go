// Package identity is who a site is: an Ed25519 key that its broker makes and that never leaves its machine. The
// federation's state knows the public key under the site's name (package fsm); no certificate authority, password
// or date takes part. The package makes, keeps and reads keys, signs with them, and sets up TLS by them. Whose a
// key is, and what its holder may do, it does not know.
package identity
