package command

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cloudshare/cloudshare/fsm/signature"
)

// MaxBundles bounds the bundles of one batch: verifying a signature takes some 65 µs, so all of an entry take no more
// than executing a full one does.
const MaxBundles = 1024

// SignedCommands is the purpose of a bundle's signature.
const SignedCommands = "cloudshare commands 1"

// Bundle is commands of one site that stand together in a batch, signed by it.
//
//	signature = site's key over (federation, the commands' encodings)
//
// It names no epoch and no leader's term: a command is executed once by its id, which holds the incarnation, and the
// incarnations of an epoch begin above those of the one before.
type Bundle struct {
	Site      string
	Commands  int // how many of the batch's, 1 or more
	Signature signature.Signature

	// Signed is what is signed. It is not encoded: it is the encodings of the commands.
	Signed []byte
	// proven is for whom the signature was found right. Invariant: only IsBy and Proven set it.
	proven proof
}

// proof is what was found: the signature of a bundle is right for a federation and a key.
type proof struct {
	federation [16]byte
	key        signature.Key
}

// Signer signs parts for a purpose with a site's key; see signature.Message.
type Signer func(purpose string, parts ...[]byte) []byte

// Sign returns the signature of commands' encodings.
func Sign(federation [16]byte, encoded []byte, by Signer) signature.Signature {
	return signature.Signature(by(SignedCommands, federation[:], encoded))
}

// SignBundle returns so many encoded commands of a site as a bundle.
func SignBundle(federation [16]byte, site string, commands int, encoded []byte, by Signer) Bundle {
	return Bundle{Site: site, Commands: commands, Signed: encoded, Signature: Sign(federation, encoded, by)}
}

// IsBy reports whether the holder of a key has signed the bundle for a federation. That is worked out once for the
// same key, some 65 µs.
func (b *Bundle) IsBy(federation [16]byte, key signature.Key) bool {
	want := proof{federation, key}
	if b.proven == want {
		return true
	}
	if key == (signature.Key{}) || !key.Verify(b.Signature[:], SignedCommands, federation[:], b.Signed) {
		return false
	}
	b.proven = want
	return true
}

// Proven notes what a bundle with the same bytes was found to be before; see IsBy.
func (b *Bundle) Proven(federation [16]byte, key signature.Key) { b.proven = proof{federation, key} }

// appendBundles appends the table of bundles behind a batch's commands.
func appendBundles(dst []byte, bundles []Bundle) []byte {
	dst = appendLen(dst, len(bundles))
	for i := range bundles {
		b := &bundles[i]
		dst = appendString(dst, b.Site)
		dst = protowire.AppendVarint(dst, uint64(b.Commands))
		dst = append(dst, b.Signature[:]...)
	}
	return dst
}

// minBundle is the fewest bytes that a bundle takes in the table.
const minBundle = 2 + len(signature.Signature{})

// bundles reads the table of bundles; ends are where the batch's commands end, and start where the first begins.
func (r *reader) bundles(start int, ends []int) []Bundle {
	n, from := 0, start
	all := list(r, "bundles", MaxBundles, minBundle, func(r *reader, b *Bundle) {
		b.Site, b.Commands = r.site(), int(r.uint("bundle's commands", math.MaxInt32))
		r.fixed("signature", b.Signature[:])
		switch {
		case r.err != nil:
		case b.Commands == 0 || b.Commands > len(ends)-n:
			r.fail(nil, "a bundle of %d commands, %d are left", b.Commands, len(ends)-n)
		case !ValidSite(b.Site):
			r.fail(nil, "bundle's site %.80q is no site name", b.Site)
		default:
			n += b.Commands
			b.Signed = r.data[from:ends[n-1]:ends[n-1]]
			from = ends[n-1]
		}
	})
	if r.err == nil && len(all) > 0 && n != len(ends) {
		r.fail(nil, "%d commands, %d in bundles", len(ends), n)
	}
	return all
}

// commandEnds passes over so many commands, and returns where each of them ends.
func (r *reader) commandEnds(n int) []int {
	ends := make([]int, n)
	for i := range ends {
		r.pos += r.count("command's length", MaxCommand, 1)
		ends[i] = r.pos
	}
	return ends
}

// Bundles returns the bundles of a batch without reading its commands; see DecodeBatch. Errors: ErrFormat, ErrVersion.
func Bundles(data []byte) ([]Bundle, error) {
	r, _, n := openBatch(data)
	start := r.pos
	all := r.bundles(start, r.commandEnds(n))
	if r.err != nil {
		return nil, fmt.Errorf("read bundles: %w", r.err)
	}
	return all, nil
}

// Split returns the encodings of a batch's commands, which alias data, without reading them. Errors: ErrFormat,
// ErrVersion.
func Split(data []byte) ([][]byte, error) {
	r, _, n := openBatch(data)
	from := r.pos
	ends := r.commandEnds(n)
	if r.err != nil {
		return nil, fmt.Errorf("split batch: %w", r.err)
	}
	out := make([][]byte, n)
	for i, end := range ends {
		out[i], from = data[from:end:end], end
	}
	return out, nil
}
