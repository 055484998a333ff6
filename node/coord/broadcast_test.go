package coord_test

import (
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord"
)

func TestBroadcastWakesAllWhoWaitAndNoneLater(t *testing.T) {
	var b coord.Broadcast
	b.Fire() // nobody waits
	var woken sync.WaitGroup
	for range 3 {
		ch := b.Wait()
		woken.Go(func() { <-ch })
	}
	b.Fire()
	woken.Wait()
	select {
	case <-b.Wait():
		t.Error("a channel taken after Fire is closed already")
	default:
	}
}
