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

// makeRoom has what failed attempts left go until so many more bytes fit into the outgoing space, and on the disk above
// what must stay free, the oldest of the owner first that has most of it here: so what is delivered finds room, and no
// owner's failures push out another's for long. If nothing is left to go, it is the store that says so.
func (k *Keeper) makeRoom(ctx context.Context, bytes int64) error {
	bytes += roomForList
	for freed := int64(0); ; {
		lacking := k.lacking(bytes, freed)
		if lacking <= 0 {
			return nil
		}
		more, err := k.LetGo(ctx, lacking)
		if more == 0 || err != nil {
			return err
		}
		freed += more
	}
}

// lacking returns how many bytes must go for so many, for which freed have gone so far. A disk that has less than must
// stay free is not filled up again by that: it takes no more than the bytes themselves.
func (k *Keeper) lacking(bytes, freed int64) int64 {
	u := k.cfg.Store.Usage(store.Outgoing)
	left := k.cfg.Store.Left(store.Outgoing, k.cfg.Free())
	return max(u.Bytes+bytes-u.Max, bytes-max(left, freed))
}

// LetGo has what failed attempts left go, about so many bytes of it, and returns how many that were. Nothing goes if
// all of it were too little.
func (k *Keeper) LetGo(ctx context.Context, bytes int64) (freed int64, err error) {
	victims := k.victims(bytes)
	if len(victims) == 0 {
		return 0, nil
	}
	freed = k.cfg.Store.HeldBy(pinsOf(victims)...)
	k.drop(ctx, victims)
	for more := true; more; {
		if _, more, err = k.cfg.Store.Collect(); err != nil {
			return freed, fmt.Errorf("make room for outputs: %w", err)
		}
	}
	if ctx.Err() != nil {
		return freed, context.Cause(ctx)
	}
	return max(freed, 1), nil // what others have left, too, goes with the last of them
}

func pinsOf(list []leaving) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = PinOf(list[i].ID)
	}
	return names
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
