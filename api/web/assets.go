package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
)

// assetFiles holds what pages load. Files of other projects are listed with their versions and sums in
// assets/SHA256SUMS; `make web-assets` fetches and compares them.
//
//go:embed assets/*.js assets/*.css assets/*.svg
var assetFiles embed.FS

// asset is one embedded file.
type asset struct {
	body []byte
	kind string
	sum  string // names this version in links, so that browsers may keep it
}

var assets = func() map[string]asset {
	kinds := map[string]string{
		".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	}
	all := map[string]asset{}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // they are part of the binary
	}
	for _, e := range entries {
		body, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		all[e.Name()] = asset{body, kinds[path.Ext(e.Name())], hex.EncodeToString(sum[:6])}
	}
	return all
}()

// assetLink returns an asset's path, with its version.
func assetLink(name string) string { return "/assets/" + name + "?v=" + assets[name].sum }

// asset serves a file for as long as a browser likes: another version has
// another address.
func (p *Pages) asset(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	a, ok := assets[param("name")]
	if !ok {
		p.Refuse(w, r, Problem{http.StatusNotFound, "No such file", "these pages have no file of this name"})
		return nil
	}
	h := w.Header()
	guard(h)
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.sum {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	_, _ = w.Write(a.body) // the client may be gone
	return nil
}
