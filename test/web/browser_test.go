package web

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var (
	binary = flag.String("binary", "../../bin/cloudshare", "the broker to look at")
	shots  = flag.String("shots", "", "folder for pictures of the pages; empty = none are kept")
)

// patience is how long one test may take.
const patience = 4 * time.Minute

// chromium finds the browser; a test without one fails, it is never left out.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"} {
		if name == "" {
			continue
		}
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	t.Fatal("there is no Chromium: install it (apt-get install chromium), or name one in CHROMIUM")
	return ""
}

// tab is one tab of a browser, and what it complained of.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// open starts a browser with one empty tab.
func open(t *testing.T) *tab {
	t.Helper()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium(t)),
		chromedp.WindowSize(1280, 900))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // Chromium refuses to sandbox root
	}
	ctx, stopBrowser := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stopBrowser)
	ctx, stopTab := chromedp.NewContext(ctx)
	t.Cleanup(stopTab)
	b := &tab{t: t, ctx: ctx}
	b.do("start", chromedp.Navigate("about:blank"))
	go b.listen(chromedp.Console(ctx)) // only now: each would start a browser, and its end would be told twice
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	return b
}

// listen notes every error that a developer would see in the console.
func (b *tab) listen(console iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range console {
		if err != nil {
			return // the browser has ended
		}
		if m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning {
			b.mu.Lock()
			b.complaints = append(b.complaints, m.String())
			b.mu.Unlock()
		}
	}
}

// quiet fails if the browser complained of something.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("the console says: %s", c)
	}
	b.complaints = nil
}

func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// visit opens a page and returns after how long the browser had built it.
func (b *tab) visit(url string) time.Duration {
	b.t.Helper()
	b.do("visit "+url, chromedp.Navigate(url))
	ms := read[float64](b, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
	if ms == 0 {
		b.t.Fatalf("visit %s: not built", url)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// await waits until a JavaScript expression is true, on this page or on one that
// comes instead of it.
func (b *tab) await(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression))
		if err == nil {
			return
		}
		// else its page is gone
		if ctx.Err() != nil || !strings.Contains(err.Error(), "context") && !strings.Contains(err.Error(), "navigated") {
			b.t.Fatalf("await %s at %s: %v", what, read[string](b, `location.href`), err)
		}
	}
}

// read evaluates an expression.
func read[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("read %.60s: %v", expression, err)
	}
	return out
}

// look sets what the reader's screen is like.
func (b *tab) look(width, height int64, scheme string) {
	b.t.Helper()
	b.do("look", chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// shoot keeps a picture of the page if somebody wants it.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatalf("picture: %v", err)
	}
	if err := os.MkdirAll(*shots, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// contains is an expression: an element's text has a part.
func contains(selector, part string) string {
	return fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, part)
}
