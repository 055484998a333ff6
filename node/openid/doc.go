// Package openid takes the tokens of a site's own identity provider (OpenID Connect) beside those that its broker
// makes: it verifies a signed JWT and says which user and role it stands for (before step 1 of a job's way). What it
// returns is an access.Token like any other, so the API knows no difference. It must not import the broker or the API.
package openid
