package web

import (
	_ "embed"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// audit.js returns what a page lacks for people who cannot see or point well.
//
//go:embed audit.js
var auditScript string

// audit fails for everything that the script finds.
func (b *tab) audit(page string) {
	b.t.Helper()
	for _, fault := range read[[]string](b, auditScript) {
		b.t.Errorf("%s: %s", page, fault)
	}
}

// TestNames: everything that can be used has a name in the browser's own
// accessibility tree.
func TestNames(t *testing.T) {
	url := serveFixture(t)
	b := open(t)
	for name, path := range paths {
		b.visit(url + path)
		nodes, err := tree(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			switch role := string(n.Role.Value); role {
			case `"link"`, `"button"`, `"searchbox"`, `"combobox"`, `"textbox"`, `"image"`, `"navigation"`, `"dialog"`, `"log"`:
				if n.Name == nil || string(n.Name.Value) == `""` {
					t.Errorf("%s: a %s has no name", name, role)
				}
			}
		}
	}
	b.quiet()
}

// TestKeyboard: the keyboard reaches everything, and what it is at is seen.
func TestKeyboard(t *testing.T) {
	url := serveFixture(t)
	b := open(t)
	b.visit(url + "/jobs/site-100.1000")
	press := func(keys string) { b.do("press", chromedp.KeyEvent(keys)) }
	focused := func() string {
		return read[string](b, `document.activeElement.id || document.activeElement.getAttribute("href") || document.activeElement.tagName`)
	}
	press(kb.Tab)
	if at := focused(); at != "#main" {
		t.Errorf("the first stop is %s, not the link past the menu", at)
	}
	if width := read[string](b, `getComputedStyle(document.activeElement).outlineStyle`); width == "none" {
		t.Error("the focus is not seen")
	}
	press(kb.Enter)
	press(kb.Tab)
	if at := focused(); at != "cancel" {
		t.Errorf("after the menu comes %s, not the page's first button", at)
	}
	press(kb.Enter)
	b.await("the question", `document.getElementById("confirm").matches(":popover-open")`)
	if text := read[string](b, `document.activeElement.textContent`); text != "Let it be" {
		t.Errorf("the focus is at %q: Enter must do no harm", text)
	}
	press(kb.Escape)
	b.await("the page again", `!document.getElementById("confirm").matches(":popover-open")`)
	// Not press: it would send the character too, whatever the page makes of the key.
	if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent,
		input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "/"}); err != nil {
		t.Fatal(err)
	}
	b.await("the search field", `document.activeElement.id === "find"`)
	press("frame 77\r")
	b.await("what was searched for", `location.search === "?q=frame+77" && `+contains("main", "render frame"))
	b.quiet()
}

// tree is what a screen reader would get.
func tree(b *tab) ([]*accessibility.Node, error) {
	got, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	return got.Nodes, err
}
