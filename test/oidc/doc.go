// Package oidc has a real broker and its command line log in at a real OpenID provider (zitadel/oidc, as a
// library), and attacks the broker with tokens that the provider did not mean for it. It walks step 1 of a job's way
// from outside. It is a module of its own, so that the provider's packages are none of the product's.
package oidc
