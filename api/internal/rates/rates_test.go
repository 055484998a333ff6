package rates

import (
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

func tableAt[K comparable](n, seconds int, now *int64) *Table[K] {
	t := New[K](n, seconds)
	t.now = func() int64 { return *now }
	return t
}

// TestRateIsKept: whenever somebody comes, no second has more than what may come at once and what a second adds; after
// the wait that a refusal tells, one is let through.
func TestRateIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, seconds := rapid.IntRange(1, 50).Draw(t, "a second"), rapid.IntRange(1, 5).Draw(t, "at once")
		now := int64(time.Hour)
		table := tableAt[string](n, seconds, &now)
		var taken []int64
		for range rapid.IntRange(1, 400).Draw(t, "tries") {
			now += rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause") * rapid.Int64Range(0, 1).Draw(t, "pauses")
			if wait := table.Take("alice"); wait > 0 {
				now += int64(wait)
				if table.Take("alice") != 0 {
					t.Fatalf("refused after a wait of %s", wait)
				}
			}
			taken = append(taken, now)
			within := 0
			for _, at := range taken {
				if now-at < int64(time.Second) {
					within++
				}
			}
			if within > n*(seconds+1)+1 {
				t.Fatalf("%d in a second, %d may come, %d seconds' worth at once", within, n, seconds)
			}
		}
	})
}

// TestOthersAreNotBound: nobody pays for another one, and nothing is bound by no table.
func TestOthersAreNotBound(t *testing.T) {
	now := int64(0)
	table := tableAt[string](1, 1, &now)
	if table.Take("mallory") != 0 || table.Take("mallory") == 0 {
		t.Error("the bound does not hold")
	}
	if table.Take("alice") != 0 {
		t.Error("another one is refused")
	}
	none := New[string](0, 1)
	for range 2 {
		if none.Take("mallory") != 0 {
			t.Error("no bound refuses")
		}
	}
}

// TestFloodFromManyAddresses: the table does not grow, and whoever owes much is not let off because many others come.
func TestFloodFromManyAddresses(t *testing.T) {
	now := int64(0)
	table := tableAt[uint64](10, 1, &now)
	for range 10 {
		table.Take(1 << 40)
	}
	for i := range uint64(20 * sets * ways) {
		if table.Take(i) != 0 {
			t.Fatalf("address %d is refused though it has asked once", i)
		}
	}
	if table.Take(1<<40) == 0 {
		t.Error("who has asked much was forgotten")
	}
	if size := unsafe.Sizeof(*table); size > 256<<10 {
		t.Errorf("the table has %d bytes", size)
	}
}

func TestSenders(t *testing.T) {
	of := func(remote string) Sender {
		from, known := SenderOf(remote)
		if !known {
			t.Errorf("%s is not read", remote)
		}
		return from
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1:80", "[::ffff:192.0.2.1]:81", true},
		{"192.0.2.1:80", "192.0.2.2:80", false},
		{"[2001:db8:1:2:3::4]:80", "[2001:db8:1:2:ffff::]:80", true},
		{"[2001:db8:1:2::]:80", "[2001:db8:1:3::]:80", false},
		{"[fe80::1%eth0]:80", "[fe80::2%eth1]:80", true},
		{"[::1]:80", "0.0.0.1:80", false},
	} {
		if got := of(c.a) == of(c.b); got != c.same {
			t.Errorf("%s and %s are the same: %t", c.a, c.b, got)
		}
	}
	for _, remote := range []string{"", "@", "host:80", "192.0.2.1"} {
		if _, known := SenderOf(remote); known {
			t.Errorf("%q is read", remote)
		}
	}
}

// BenchmarkTake is what a bound costs each request: the address is read, and a slot found among full ones.
func BenchmarkTake(b *testing.B) {
	table := New[Sender](1<<30, 5)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			from, _ := SenderOf("192.0.2.1:1000")
			table.Take(from)
		}
	})
}
