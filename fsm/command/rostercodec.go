package command

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendRosterBody writes what is about who the members are.
func appendRosterBody(dst []byte, body Body) []byte {
	switch b := body.(type) {
	case *Invite:
		dst = appendBool(appendString(append(dst, b.Key[:]...), b.Site), b.Elector)
		return appendInt(dst, b.ForMs)
	case *Revoke:
		return append(dst, b.Key[:]...)
	case *Admit:
		dst = append(appendString(append(dst, b.Invitation[:]...), b.Site), b.Key[:]...)
		return append(append(dst, b.ByInvitation[:]...), b.ByKey[:]...)
	case *Rekey:
		dst = protowire.AppendVarint(appendString(dst, b.Site), b.Generation)
		dst = appendBool(append(append(dst, b.Key[:]...), b.Recovery[:]...), b.ByRecovery)
		return append(append(dst, b.By[:]...), b.ByNew[:]...)
	case *Motion:
		dst = appendBool(append(appendString(append(dst, byte(b.What)), b.Site), b.Key[:]...), b.Params != nil)
		if b.Params != nil {
			dst = appendParams(dst, b.Params)
		}
		return dst
	case *Vote:
		return appendBool(protowire.AppendVarint(dst, b.Motion), b.Yes)
	case *GossipKey:
		dst = protowire.AppendVarint(protowire.AppendVarint(dst, b.Term), b.Generation)
		return append(dst, b.Key[:]...)
	}
	return dst
}

// rosterBody reads what appendRosterBody has written.
func (r *reader) rosterBody(kind uint64) Body {
	switch kind {
	case uint64(KindInvite):
		b := new(Invite)
		r.fixed("key", b.Key[:])
		b.Site, b.Elector, b.ForMs = r.site(), r.bool("elector"), r.int("for_ms")
		return b
	case uint64(KindRevoke):
		b := new(Revoke)
		r.fixed("key", b.Key[:])
		return b
	case uint64(KindAdmit):
		return r.admit()
	case uint64(KindRekey):
		return r.rekey()
	case uint64(KindMotion):
		return r.motion()
	case uint64(KindVote):
		return &Vote{Motion: r.number(), Yes: r.bool("yes")}
	}
	b := &GossipKey{Term: r.number(), Generation: r.number()}
	r.fixed("key", b.Key[:])
	return b
}

func (r *reader) admit() *Admit {
	b := new(Admit)
	r.fixed("invitation", b.Invitation[:])
	b.Site = r.site()
	r.fixed("key", b.Key[:])
	r.fixed("signature", b.ByInvitation[:])
	r.fixed("signature", b.ByKey[:])
	return b
}

func (r *reader) rekey() *Rekey {
	b := &Rekey{Site: r.site(), Generation: r.uint("generation", MaxKeys)}
	r.fixed("key", b.Key[:])
	r.fixed("recovery key", b.Recovery[:])
	b.ByRecovery = r.bool("by_recovery")
	r.fixed("signature", b.By[:])
	r.fixed("signature", b.ByNew[:])
	return b
}

func (r *reader) motion() *Motion {
	b := &Motion{What: MotionKind(r.uint("motion", math.MaxUint8))}
	b.Site = r.string("site", 63)
	r.fixed("key", b.Key[:])
	if r.bool("params") {
		b.Params = new(Params)
		r.params(b.Params)
	}
	return b
}
