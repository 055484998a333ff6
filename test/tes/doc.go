// Package tes tests GA4GH TES with an engine of workflows that people use: Debian's own
// Snakemake runs workflows over three sites whose tasks are containers, through the
// broker of one of them. It has tests with the build tag "tes" only (make test-tes),
// since they need root, Docker and the image that .ci/tes makes.
package tes
