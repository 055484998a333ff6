// Package web looks at the pages in a headless Chromium: step 1 of a job's way
// as people take it. It is a module of its own, so that the browser's protocol is
// no dependency of the product. `make test-web` runs it; Debian's package
// chromium has the browser.
package web
