package stagein

import (
	"fmt"
	"sync"

	"github.com/cloudshare/cloudshare/node/files"
)

// progress is how far the files of one attempt are.
type progress struct {
	tell func(string)
	// telling is held while something is told, so that the newest is told last.
	telling sync.Mutex

	mu           sync.Mutex
	begun        bool  // what all files are is known
	files, all   int   // that are here, and in all
	bytes, total int64 // of these
	came         int64 // bytes that were fetched, manifests among them
}

// say tells something else.
func (p *progress) say(what string) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.told(what)
}

// told tells something. REQUIRES: p.telling held.
func (p *progress) told(what string) {
	if p.tell != nil {
		p.tell(what)
	}
}

// begin notes what all files are.
func (p *progress) begin(blobs []files.Blob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.files, p.bytes, p.all = true, 0, 0, len(blobs)
	for _, b := range blobs {
		p.total += b.Size
	}
}

// are notes what is here already.
func (p *progress) are(n int, bytes int64) {
	p.mu.Lock()
	p.files, p.bytes = p.files+n, p.bytes+bytes
	p.mu.Unlock()
	p.show()
}

// add notes bytes that have come: fetched by this attempt, or by another one.
func (p *progress) add(fetched, shared int64) {
	p.mu.Lock()
	p.came += fetched
	p.bytes += fetched + shared
	p.mu.Unlock()
	if shared > 0 {
		p.done(1)
		return
	}
	p.show()
}

// done notes files that are whole.
func (p *progress) done(n int) {
	p.mu.Lock()
	p.files += n
	p.mu.Unlock()
	p.show()
}

// count returns how many bytes this attempt has fetched.
func (p *progress) count() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came
}

func (p *progress) show() {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	text := "staging: fetches the lists of its files"
	if p.begun {
		text = fmt.Sprintf("staging %d of %d files, %s of %s", min(p.files, p.all), p.all,
			sizeText(min(p.bytes, p.total)), sizeText(p.total))
	}
	p.mu.Unlock()
	p.told(text)
}

// sizeText returns a size as people read it.
func sizeText(n int64) string {
	const units = "kMGT"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x := float64(n)
	for i := range units {
		if x /= 1000; x < 999.5 || i == len(units)-1 {
			return fmt.Sprintf("%.3g %cB", x, units[i])
		}
	}
	return ""
}
