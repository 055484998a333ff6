package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// TestConcurrentUse: many at once put, fill, read, pin and collect the same few blobs in little room. Whatever was read
// was right, and at the end all that counts is there.
func TestConcurrentUse(t *testing.T) {
	soon := Limit{1 << 20, time.Nanosecond}
	r := newRig(t, t.TempDir(), limitsOf(soon, Limit{8 * block, 0}, soon))
	r.withPieces(shortPiece)
	var ticks atomic.Int64 // so that what nobody pins goes at once
	r.now = func() time.Time { return moment.Add(time.Duration(ticks.Add(1))) }
	r.opts.Now = r.now
	defer func() { _ = r.Close() }()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			user := &user{rig: r, Rand: rand.New(rand.NewPCG(uint64(n), 1)), name: fmt.Sprint("user ", n)}
			for range 150 {
				user.do()
			}
			r.Unpin(user.name)
		})
	}
	all.Wait()
	r.wantWhole("at the end")
	r.reopen()
	r.wantWhole("after a restart")
}

type user struct {
	*rig
	*rand.Rand
	name string
}

// do does one thing. What may not be now, since others do the same, is told by the errors for that.
func (u *user) do() {
	at := modelPlaces[u.IntN(len(modelPlaces))]
	content := modelContents[u.IntN(len(modelContents))]
	var err error
	switch u.IntN(8) {
	case 0, 1:
		_, err = u.Put(context.Background(), at, strings.NewReader(content), files.MaxFile)
	case 2, 3:
		err = u.fillOnce(at, content)
	case 4, 5:
		err = u.readOnce(at, content)
	case 6:
		u.Pin(u.name, ref(at, content))
		u.Missing(at, files.HashOf([]byte(content)))
	default:
		u.Unpin(u.name)
		_, _, err = u.Collect()
	}
	if err != nil && !errors.Is(err, ErrFull) && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrUnknown) {
		u.Errorf("%s: %v", u.name, err)
	}
}

func (u *user) fillOnce(at Place, content string) error {
	p, err := u.Begin(at, files.BlobOf([]byte(content)))
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, i := range p.Missing() {
		all.Go(func() {
			if cause := p.WritePiece(i, u.pieceOf(content, i)); cause != nil {
				u.Errorf("piece %d: %v", i, cause)
			}
		})
	}
	all.Wait()
	if u.IntN(3) == 0 {
		return p.Close()
	}
	return errors.Join(p.Finish(), p.Close())
}

func (u *user) readOnce(at Place, content string) error {
	r, err := u.Open(at, files.HashOf([]byte(content)))
	if err != nil {
		return err
	}
	got, err := io.ReadAll(r)
	if err == nil && string(got) != content {
		u.Errorf("read %.20q instead of %.20q", got, content)
	}
	return errors.Join(err, r.Close())
}

// Pieces that come in any order, four at a time, give the same hash as one after another.
func TestPiecesInParallel(t *testing.T) {
	r := testRig(t).withPieces(shortPiece)
	content := strings.Repeat(text("x", 997), 60)
	for n := range 5 {
		at := Place{Cache, fmt.Sprint("site-", n)}
		p := r.begin(at, content)
		order := make(chan int, p.Pieces())
		for _, i := range rand.New(rand.NewPCG(uint64(n), 2)).Perm(p.Pieces()) {
			order <- i
		}
		close(order)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i := range order {
					if err := p.WritePiece(i, r.pieceOf(content, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if err := p.Finish(); err != nil {
			t.Fatal(err)
		}
		r.want(at, content)
	}
}
