package stageout

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/files/store"
)

// roomForList is kept free for a manifest, which is written while its files are.
const roomForList = 64 << 10

// makeRoom has what failed attempts left go until so many more bytes fit into the outgoing space, the oldest of the
// owner first that has most of it here: so what is delivered finds room, and no owner's failures push out another's
// for long. If nothing is left to go, it is the store that says so.
func (k *Keeper) makeRoom(ctx context.Context, bytes int64) error {
	for {
		u := k.cfg.Store.Usage(store.Outgoing)
		lacking := u.Bytes + bytes + roomForList - u.Max
		if lacking <= 0 {
			return nil
		}
		if some, err := k.LetGo(ctx, lacking); !some || err != nil {
			return err
		}
	}
}

// LetGo has what failed attempts left go, about so many bytes of it, and reports whether there was any. Nothing goes if
// all of it were too little.
func (k *Keeper) LetGo(ctx context.Context, bytes int64) (some bool, err error) {
	victims := k.victims(bytes)
	if len(victims) == 0 {
		return false, nil
	}
	k.drop(ctx, victims)
	for more := true; more; {
		if _, more, err = k.cfg.Store.Collect(); err != nil {
			return true, fmt.Errorf("make room for outputs: %w", err)
		}
	}
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	return true, nil
}

// Spare returns about how many bytes LetGo can let go: files that several have left count for each of them.
func (k *Keeper) Spare() (bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.by {
		if e.mayGo() {
			bytes += e.bytes()
		}
	}
	return bytes
}

// frees returns how much room of the store there would be if LetGo let all go.
func (k *Keeper) frees() int64 {
	var names []string
	k.mu.Lock()
	for _, e := range k.by {
		if e.mayGo() {
			names = append(names, PinOf(e.ID))
		}
	}
	k.mu.Unlock()
	return k.cfg.Store.HeldBy(names...)
}

// victims returns what goes next for so many bytes, none: nothing may. It is nobody's any more then.
func (k *Keeper) victims(bytes int64) (out []leaving) {
	if k.frees() < bytes {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	of, sums, most := map[string][]leaving{}, map[string]int64{}, ""
	for ref, e := range k.by {
		if !e.mayGo() {
			continue
		}
		site := ref.Job.Site
		of[site] = append(of[site], leaving{ref: ref, Entry: e, gone: true})
		if sums[site] += e.bytes(); most == "" || sums[site] > sums[most] {
			most = site
		}
	}
	list := of[most]
	slices.SortFunc(list, func(a, b leaving) int {
		return cmp.Or(cmp.Compare(a.KeptMs, b.KeptMs), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	for freed := int64(0); freed < bytes && len(out) < len(list); {
		e := list[len(out)]
		e.released = true
		freed += e.bytes()
		out = append(out, e)
	}
	return out
}
